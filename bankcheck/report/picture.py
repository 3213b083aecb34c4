"""The 32 banks as a strip: the distinct words each bank delivers to a service group, and to how many lanes.

    banks        0       4       8      12      16      20      24      28
    lanes 0-31  32 . . . . . . . ...       bank 0 has 32 words, so the group takes 32 wavefronts

Accesses of 8 and 16 bytes always cover 2 or 4 neighbouring banks alike, which are then one cell.
"""

from __future__ import annotations

from bankcheck.banks import GroupLoad, Traffic
from bankcheck.hardware import BANKS, WORD_BYTES

_LABEL = 12
_CELL = 2
MOST_ROWS = 4


def bank_strip(traffic: Traffic) -> list[str]:
    """The strip as lines of at most 80 characters; service groups that look alike are shown once."""
    groups = traffic.groups
    if not groups:
        return ["no lane takes part"]
    together = max(1, traffic.rule.bytes_per_lane // WORD_BYTES)
    banks = range(0, BANKS, together)
    alike: dict[tuple[tuple[int, ...], tuple[int, ...]], list[GroupLoad]] = {}
    for group in groups:
        words = tuple(len(group.banks.get(bank, {})) for bank in banks)
        lanes = tuple(len({lane for want in group.banks.get(bank, {}).values() for lane in want}) for bank in banks)
        alike.setdefault((words, lanes), []).append(group)
    width = _CELL * together
    if together == 1:
        head = "".join(f"{bank if bank % 4 == 0 else '':>{width}}" for bank in banks)
    else:
        head = "".join(f"{f'{bank}-{bank + together - 1}' if together > 2 else bank:>{width}}" for bank in banks)
    lines = [f"{'banks':<{_LABEL}}{head}"]
    for (words, lanes), members in list(alike.items())[:MOST_ROWS]:
        lines.append(f"{lanes_text(members):<{_LABEL}}{_cells(words, width)} words")
        if lanes != words:
            lines.append(f"{'':<{_LABEL}}{_cells(lanes, width)} lanes")
    if len(alike) > MOST_ROWS:
        lines.append(f"and {len(alike) - MOST_ROWS} more groups")
    return [line.rstrip() for line in lines]


def _cells(counts: tuple[int, ...], width: int) -> str:
    return "".join(f"{count or '.':>{width}}" for count in counts)


def lanes_text(members: list[GroupLoad]) -> str:
    """ "lanes 0-31", or "4 groups" where several look alike."""
    if len(members) > 1:
        return f"{len(members)} groups"
    lanes = members[0].lanes
    return f"lanes {lanes[0]}-{lanes[-1]}" if len(lanes) > 1 else f"lane {lanes[0]}"
