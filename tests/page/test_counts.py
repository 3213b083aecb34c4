"""The pages count as the package does: every rule, and every layout and value that a reader can choose."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import pytest
from test_measured import WAVEFRONTS

from bankcheck.access import Access, read_access
from bankcheck.analysis import Analysis, analyze_access
from bankcheck.banks import Traffic, count_wavefronts
from bankcheck.errors import BankcheckError
from bankcheck.fixes import propose
from bankcheck.hardware import RULES, WARP_LANES
from bankcheck.layout import Swizzle
from bankcheck.matrix.model import ldmatrix
from bankcheck.options import Options, options_from
from bankcheck.page.access import access_data
from bankcheck.page.coordinates import with_padding
from bankcheck.page.matrix import ldmatrix_data
from bankcheck.page.rules import hardware_data, rule_data
from bankcheck.warps import lane_offsets

Run = Callable[[str, Any], Any]
COUNT_ALL = """
return input.requests.map(([name, addresses]) => {
  const count = countRequest(input.rules[name], input.hardware, addresses);
  if (count.fault) return count.fault;
  const groups = count.groups.map(({ lanes, wavefronts, queues }) =>
    [lanes, wavefronts, [...queues].map(([bank, queue]) => [bank, queue.map(({ word, lanes }) => [word, lanes])])]);
  return [count.wavefronts, count.ideal, count.excess, count.ways, count.merged, count.rowPasses, groups];
});
"""


def _counted(scripts: Run, requests: list[tuple[str, list[int | None]]]) -> list[Any]:
    rules = {name: rule_data(RULES[name]) for name, _ in requests}
    return scripts(COUNT_ALL, {"requests": requests, "rules": rules, "hardware": hardware_data()})


def _summary(traffic: Traffic) -> list[Any]:
    return [traffic.wavefronts, traffic.ideal, traffic.excess, traffic.ways, traffic.merged, traffic.row_passes]


def _queues(traffic: Traffic) -> list[Any]:
    """The groups with, for every bank, its words and who wants each (with atomics, its lanes one by one)."""
    by_lane = traffic.rule.counts == "lanes"
    found = []
    for group in traffic.groups:
        banks = []
        for bank, words in group.banks.items():
            items = [([word, list(lanes)]) for word, lanes in words.items()]
            banks.append([bank, [[word, [lane]] for word, lanes in items for lane in lanes] if by_lane else items])
        found.append([list(group.lanes), group.wavefronts, banks])
    return found


def _sorted(groups: list[Any]) -> list[Any]:
    return [[lanes, count, sorted([bank, sorted(queue)] for bank, queue in banks)] for lanes, count, banks in groups]


def test_every_measured_request_is_counted_alike(scripts: Run) -> None:
    requests = [(instruction, lanes) for instruction, *_, lanes in WAVEFRONTS]
    assert len(requests) > 1900
    for (instruction, lanes), found in zip(requests, _counted(scripts, requests), strict=True):
        traffic = count_wavefronts(instruction, lanes)
        assert found[:6] == _summary(traffic), (instruction, lanes)
        assert _sorted(found[6]) == _sorted(_queues(traffic)), (instruction, lanes)


def test_random_requests_of_every_rule_are_counted_alike(scripts: Run) -> None:
    chosen = random.Random(7)
    requests: list[tuple[str, list[int | None]]] = []
    for name, rule in RULES.items():
        for spread in (2, 8, 40, 300):
            lanes: list[int | None] = [
                rule.bytes_per_lane * chosen.randrange(-spread, spread) for _ in range(WARP_LANES)
            ]
            requests.append((name, lanes))
            requests.append((name, [at if chosen.random() < 0.7 else None for at in lanes]))
            requests.append((name, [at for at in lanes[::2] for _ in range(2)]))
    for (name, lanes), found in zip(requests, _counted(scripts, requests), strict=True):
        assert found[:6] == _summary(count_wavefronts(name, lanes)), (name, lanes)


def test_a_misaligned_lane_is_a_fault_there_too(scripts: Run) -> None:
    lanes: list[int | None] = [16 * lane for lane in range(32)]
    lanes[5] = 84
    (found,) = _counted(scripts, [("ld.shared.b128", lanes)])
    assert found == "lane 5 accesses byte 84, not a multiple of 16: ld.shared.b128 would fault"


SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("tile[tx][ty+j]", {}),
    ("tile[ty+j][tx]", {"op": "store"}),
    ("tile[tx][ty+j]", {"pad": 3, "let": {"j": "0:32:8"}}),
    ("tile[tx][ty ^ tx]", {"dtype": "int", "op": "atomic"}),
    ("tile[tx % 8][ty]", {"dtype": "int", "op": "cas"}),
    ("tile[lane][8*k]", {"shape": (32, 64), "dtype": "half", "vec": 8}),
    ("tile[lane % 16][8*(lane/16) + 16*k]", {"shape": (16, 64), "dtype": "half", "op": "ldmatrix.x4"}),
    ("*(float4*)&tile[tx][4*ty]", {"shape": (32, 64)}),
    ("tile[lane / 2][lane % 2]", {"dtype": "double"}),
    ("tile[tx][j]", {"dtype": "char", "shape": (32, 64)}),
    ("tile[tx][3*j]", {"dtype": "half", "swizzle": (3, 3, 3), "shape": (64, 64)}),
    ("t[k][tx][ty]", {"shape": (2, 32, 32)}),
    ("s[base + tx*stride]", {}),
    ("s[33*tx + j]", {"dtype": "char"}),
    ("tile[tx][ty]", {"where": "tx < n", "block": (16, 4)}),
    ("tile[tx / (j - 3)][ty]", {"block": (8, 8)}),
    ("tile[tx*k*k][j]", {}),
    ("tile[lane / 8][lane % 8]", {"dtype": "float4", "op": "cp.async", "shape": (8, 8)}),
    ("tile[tx][ty].y", {"dtype": "float3", "op": "store", "shape": (32, 8)}),
    ("struct P { float x, y; }; __shared__ P tile[16][8]; tile[tx % 16][ty].y", {}),
]
SWIZZLES = list(product((0, 1, 2, 3, 5), (0, 1, 2, 3, 4), (1, 3, 5, -3)))


@cache
def _exported(number: int) -> tuple[Options, Analysis, dict[str, Any]]:
    expression, given = SETTINGS[number]
    options = options_from(**given)
    analysis = analyze_access(read_access(expression, options))
    return options, analysis, access_data(analysis, propose(analysis, options), options)


def _laid_out(expression: str, options: Options, unit: str, pad: int, swizzle: Any) -> Access | None:
    """The access in a layout, a swizzle counting in `unit`; None where the package refuses it."""
    changed = with_padding(options, pad)
    try:
        if swizzle == "xor":
            changed = changed._replace(pad=(), swizzle_xor=True)
        elif swizzle != "off":
            changed = changed._replace(swizzle=Swizzle(*swizzle), swizzle_unit=unit)
        return read_access(expression, changed)
    except BankcheckError:
        return None


def _expected(access: Access | None, point: dict[str, int], base: int) -> list[Any] | None:
    """What the package says of these values; None where the request would fault."""
    if access is None:
        return None
    try:
        offsets, undefined = lane_offsets(access, {**point, access.base: 0})
        if undefined:
            return None
        traffic = count_wavefronts(access.rule, [None if at is None else base + at for at in offsets])
    except BankcheckError:
        return None
    return [*_summary(traffic), list(traffic.addresses)]


COUNT_LAYOUTS = """
return input.asked.map(([indices, base, pad, swizzle]) => {
  const count = countAt(input.data, { indices, base }, { pad, swizzle });
  if (count.fault) return null;
  return [count.wavefronts, count.ideal, count.excess, count.ways, count.merged, count.rowPasses, count.addresses];
});
"""


@pytest.mark.parametrize("number", range(len(SETTINGS)), ids=[expression for expression, _ in SETTINGS])
def test_every_layout_and_value_is_counted_alike(scripts: Run, number: int) -> None:
    expression, (options, _, data) = SETTINGS[number][0], _exported(number)
    chosen = random.Random(expression)
    layouts: list[tuple[int, Any]] = [(0, swizzle) for swizzle in chosen.sample(SWIZZLES, 25)]
    layouts += [(0, "off")] if data["noPadding"] else [(pad, "off") for pad in range(9)]
    layouts += [] if data["noXor"] else [(0, "xor")]
    layouts += [] if data["noPadding"] else [(1, (3, 3, 3)), (8, (2, 2, 3)), (4, (3, 2, 3))]
    asked = []
    for layout in layouts:
        for _ in range(3):
            indices = [chosen.randrange(len(knob["values"])) for knob in data["knobs"]]
            asked.append((indices, chosen.choice(data["bases"]), *layout))
    found = scripts(COUNT_LAYOUTS, {"data": data, "asked": asked})
    unit = "byte" if data["array"]["swizzleUnitBytes"] == 1 else "element"
    accesses = {layout: _laid_out(expression, options, unit, *layout) for layout in layouts}
    for (indices, base, *layout), got in zip(asked, found, strict=True):
        point = {knob["name"]: knob["values"][at] for knob, at in zip(data["knobs"], indices, strict=True)}
        assert got == _expected(accesses[layout[0], layout[1]], point, base), (layout, point, base)
    assert sum(got is not None for got in found) >= 12


def test_the_page_starts_at_the_worst_case(scripts: Run) -> None:
    for number, (expression, _) in enumerate(SETTINGS):
        _, analysis, data = _exported(number)
        start = [knob["start"] for knob in data["knobs"]]
        asked = [(start, data["base"], data["start"]["pad"], data["start"]["swizzle"])]
        (found,) = scripts(COUNT_LAYOUTS, {"data": data, "asked": asked})
        if analysis.worst.exact:
            assert found[0] == analysis.wavefronts and found[1] == analysis.ideal, expression


TILES: list[dict[str, Any]] = [
    {},
    {"swizzle": (3, 3, 3)},
    {"trans": True, "pad": 8},
    {"rows": 32, "num": 4, "cols": 128},
    {"rows": 32, "num": 2, "dtype": "float", "cols": 32, "swizzle": (3, 2, 3)},
    {"rows": 16, "num": 4, "dtype": "int8", "cols": 64, "pitch_bytes": 80},
    {"rows": 64, "cols": 8, "base_bytes": 32},
    {"rows": 8, "cols": 64, "op": "stmatrix", "tma": "128B"},
    {"rows": 16, "cols": 64, "row": "lane % 8 + 8 * (q % 2)", "col": "8 * q"},
]
COUNT_TILES = """
const { data } = input;
return data.layouts.map(({ layout }) => data.points.map(([pattern, row, at]) => {
  const places = data.patterns[pattern].map(([r, c]) => [r + row, c + at]);
  const addresses = places.map((place) => data.base + storedBytes(data.array, layout, ...place));
  const { wavefronts, ideal, ways } = countRequest(data.rule, data.hardware, addresses);
  const names = data.holders.map((form) => form.map((row, index) => row.map(([lane, low, high]) =>
    [lane, unitName(data.array, places[low[0]], low[1]), unitName(data.array, places[high[0]], high[1])])));
  return { addresses, wavefronts, ideal, ways, names, groups: addresses.map((address) => groupOf(data, address)) };
}));
"""


@pytest.mark.parametrize("given", TILES, ids=str)
def test_every_matrix_request_is_counted_alike(scripts: Run, given: dict[str, Any]) -> None:
    report = ldmatrix(**given)
    data = ldmatrix_data(report)
    for number, (layout, found) in enumerate(zip(data["layouts"], scripts(COUNT_TILES, {"data": data}), strict=True)):
        expected = report if number == data["start"] else _same_lanes(given, layout["layout"], data)
        assert len(found) == len(expected.segments)
        for segment, got in zip(expected.segments, found, strict=True):
            assert got["addresses"] == list(segment.addresses) and got["groups"] == list(segment.groups)
            assert [got[name] for name in ("wavefronts", "ideal", "ways")] == [
                segment.wavefronts, segment.ideal, segment.ways,
            ]  # fmt: skip
            for index in range(8):
                row, column = segment.places[index]
                detail = expected.at(row, column // expected.tile.segment_elements)
                if detail.lane != index:  # the row is in several requests, or lanes point at it more than once
                    continue
                for form, holders in enumerate((detail.holders, detail.holders_trans)):
                    assert got["names"][form][index] == [[h.lane, *h.elements] for h in holders]


def _same_lanes(given: dict[str, Any], layout: dict[str, Any], data: dict[str, Any]) -> Any:
    """The report of another layout of the same tile under the same lanes."""
    kept = {n: v for n, v in given.items() if n not in ("swizzle", "swizzle_bytes", "tma", "pad", "pitch_bytes")}
    unit = "swizzle" if data["array"]["swizzleUnitBytes"] > 1 else "swizzle_bytes"
    swizzle = {} if layout["swizzle"] == "off" else {unit: tuple(layout["swizzle"])}
    return ldmatrix(**kept, **swizzle, pad=layout["pad"])
