"""Neighbouring members of one vector: `s[t].x` and `s[t].y` in straight-line code are one 8-byte load.

nvcc merges accesses to neighbouring members when the vector's alignment allows it and nothing in between can write
memory. (Seen in the SASS of `a += s[t].x; a += s[t].y;` for sm_90: one LDS.64.)
"""

from __future__ import annotations

from bankcheck import expr
from bankcheck.ctype import Record, size_of
from bankcheck.expr import Const
from bankcheck.lint.counting.lanes import Numbering
from bankcheck.lint.interpreter.memory import Site


def merge_members(sites: list[Site]) -> list[Site]:
    """The accesses as the compiler issues them, in order."""
    number = Numbering()
    groups: list[list[Site]] = []
    latest: dict[tuple[object, ...], list[Site]] = {}
    for site in sites:
        if site.member is None or site.op not in ("load", "store"):
            groups.append([site])
            continue
        key = (site.op, site.block if site.op == "load" else 0, site.buffer.name, site.buffer.declared,
               number(site.member.base), site.member.size, tuple(id(term) for term in site.guard), site.calls,
               tuple(site.binds.items()))  # fmt: skip
        group = latest.get(key)
        if group is None or (site.op == "store" and site.order != group[-1].order + 1):
            latest[key] = group = []
            groups.append(group)
        group.append(site)
    return [merged for group in groups for merged in _merged(group)]


def _merged(group: list[Site]) -> list[Site]:
    if len(group) == 1:
        return group
    by_offset: dict[int, list[Site]] = {}
    for site in group:
        assert site.member is not None
        by_offset.setdefault(site.member.offset_bytes, []).append(site)
    width = min(size_of(site.ctype) for site in group)
    assert group[0].member is not None
    size = group[0].member.size
    result: list[Site] = []
    for wide in (16, 8, 4):
        if wide > size or wide <= width:
            continue
        for start in range(0, size, wide):
            wanted = range(start, start + wide, width)
            if all(offset in by_offset for offset in wanted):
                members = [site for offset in wanted for site in by_offset.pop(offset)]
                result.append(_one(sorted(members, key=lambda s: s.order), start, wide))
    rest = [sites[0] for sites in by_offset.values()]
    return sorted(result + rest, key=lambda site: site.order)


def _one(members: list[Site], start: int, wide: int) -> Site:
    first = members[0]
    assert first.member is not None
    offset = expr.binary("+", first.member.base, Const(start, expr.LONG))
    names = dict.fromkeys(site.text.rpartition(".")[2] for site in members)
    kind = "load" if first.op == "load" else "store"
    note = f"the compiler merges {' '.join('.' + name for name in names)} into one {wide}-byte {kind}"
    return first._replace(text=first.text.rpartition(".")[0] or first.text, offset=offset, bytes_per_lane=wide,
                   ctype=Record("vector", wide, wide, ()), notes=(note,), member=None)  # fmt: skip
