"""ldmatrix and stmatrix on a tile: the worked numbers, an independent count, swizzle facts, errors, exact output."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bankcheck.banks import count_wavefronts
from bankcheck.commands.ldmatrix import command
from bankcheck.errors import BankcheckError
from bankcheck.layout import Swizzle
from bankcheck.matrix.model import ldmatrix
from bankcheck.matrix.swizzlefacts import escape


def run(*arguments: str) -> tuple[int, str]:
    """(exit code, standard output) of `bankcheck ldmatrix`; a BankcheckError is raised."""
    result = CliRunner().invoke(command, list(arguments), standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.return_value, result.stdout


def segment_at(report, q):
    return next(segment for segment in report.segments if segment.q == q)


def groups_of(report, q):
    return segment_at(report, q).groups


def brute_force(addresses):
    """Wavefronts of one request, counted by hand: eight rows of four words at a time, the fullest bank decides."""
    total = 0
    for matrix in range(0, len(addresses), 8):
        words = {(address + byte) // 4 for address in addresses[matrix : matrix + 8] for byte in range(16)}
        total += max(sum(word % 32 == bank for word in words) for bank in range(32))
    return total


# The worked numbers: half tile[8][64], rows 128 B apart, base a multiple of 128 B


def test_plain_tile_is_an_8_way_conflict_for_every_segment():
    report = ldmatrix()
    assert (report.wavefronts, report.ideal, report.excess, report.ways) == (8, 1, 7, 8)
    assert [(segment.q, segment.wavefronts) for segment in report.segments] == [(q, 8) for q in range(8)]
    assert all(segment.groups == (segment.q,) * 8 for segment in report.segments)
    assert report.tile.storage_bytes == 1024


def test_swizzle_333_has_one_wavefront_for_every_segment():
    report = ldmatrix(swizzle=(3, 3, 3))
    assert [segment.wavefronts for segment in report.segments] == [1] * 8
    assert groups_of(report, 0) == (0, 1, 2, 3, 4, 5, 6, 7)
    assert groups_of(report, 3) == (3, 2, 1, 0, 7, 6, 5, 4)
    assert report.tile.storage_bytes == 1024
    assert report.warnings == report.fixes == ()


def test_row_5_moves_from_byte_640_to_720_and_its_lanes_stay():
    plain, swizzled = ldmatrix().at(5, 0), ldmatrix(swizzle=(3, 3, 3)).at(5, 0)
    assert (plain.offset_bytes, plain.stored_bytes, plain.banks) == (640, 640, (0, 3))
    assert (swizzled.offset_bytes, swizzled.stored_bytes, swizzled.banks) == (640, 720, (20, 23))
    assert plain.lane == swizzled.lane == 5
    assert [holder.lane for holder in swizzled.holders] == [20, 21, 22, 23]
    assert plain.holders == swizzled.holders
    assert ldmatrix(swizzle=(3, 3, 3)).at(5, 3).group == 6


@pytest.mark.parametrize(("row", "lanes"), [(0, [0, 1, 2, 3]), (1, [4, 5, 6, 7]), (7, [28, 29, 30, 31])])
def test_a_row_goes_to_four_lanes_with_two_columns_each(row, lanes):
    detail = ldmatrix().at(row, 0)
    assert detail.lane == row
    assert [holder.lane for holder in detail.holders] == lanes
    assert [holder.elements for holder in detail.holders] == [
        (f"A[{row}][{2 * k}]", f"A[{row}][{2 * k + 1}]") for k in range(4)
    ]


def test_trans_gives_lane_4g_plus_t_rows_2t_and_2t_plus_1_of_column_g():
    for row in range(8):
        for holder in ldmatrix(trans=True).at(row, 0).holders_trans:
            g, t = holder.lane // 4, holder.lane % 4
            assert holder.elements == (f"A[{2 * t}][{g}]", f"A[{2 * t + 1}][{g}]")
            assert row in (2 * t, 2 * t + 1)
    assert ldmatrix(trans=True).wavefronts == 8  # .trans does not remove a conflict


def test_paddings():
    assert ldmatrix(pad=8).wavefronts == 1
    assert ldmatrix(pad=8).tile.storage_bytes == 1152
    assert groups_of(ldmatrix(pad=8), 2) == (2, 3, 4, 5, 6, 7, 0, 1)
    with pytest.raises(BankcheckError, match="row 1 starts at byte 130"):
        ldmatrix(pad=1)


def test_comparison_is_the_table_of_four_layouts():
    table = {variant.text: variant for variant in ldmatrix().compare()}
    assert [(v.name, v.tile.storage_bytes, v.aligned, v.wavefronts) for v in table.values()] == [
        ("plain", 1024, True, 8),
        ("padded", 1040, False, None),
        ("padded", 1152, True, 1),
        ("swizzled", 1024, True, 1),
    ]
    assert "byte 130" in table["half tile[8][65]"].reason


def test_compact_tile_has_no_conflict_and_needs_no_swizzle():
    assert ldmatrix(cols=8).wavefronts == 1
    assert groups_of(ldmatrix(cols=8), 0) == tuple(range(8))
    swizzled = ldmatrix(cols=8, swizzle=(3, 3, 3))
    assert swizzled.warnings == ()
    assert swizzled.swizzle is not None and not swizzled.swizzle.moves
    assert groups_of(swizzled, 0) == tuple(range(8))
    assert any("no swizzle is needed" in note for note in swizzled.notes)


def test_cutlass_store_column():
    """CUTLASS's Turing implicit GEMM: store_column = (lane % 8) ^ (lane / 8), in 16-byte vectors."""
    report = ldmatrix(swizzle=(3, 3, 3))
    orders = [[report.at(u, v).group for v in range(8)] for u in range(4)]
    assert orders == [
        [0, 1, 2, 3, 4, 5, 6, 7],
        [1, 0, 3, 2, 5, 4, 7, 6],
        [2, 3, 0, 1, 6, 7, 4, 5],
        [3, 2, 1, 0, 7, 6, 5, 4],
    ]
    store = [128 * (lane // 8) + 16 * ((lane % 8) ^ (lane // 8)) for lane in range(32)]
    assert count_wavefronts("st.shared.b128", store).wavefronts == 4
    assert store == [report.at(lane // 8, lane % 8).stored_bytes for lane in range(32)]


@pytest.mark.parametrize("head_dim", [64, 128, 256])
def test_flashinfer_permuted_offset(head_dim):
    """FlashInfer's 128-byte mode: unit = i * stride + (j ^ (i % 8)), in 16-byte units."""
    stride = head_dim // 8
    report = ldmatrix(16, head_dim, num=4, swizzle=(3, 3, stride.bit_length() - 1))
    assert {segment.wavefronts for segment in report.segments} == {4}
    for i in range(16):
        for j in range(stride):
            assert report.at(i, j).stored_bytes == 16 * (i * stride + (j ^ (i % 8)))
    written_out = ldmatrix(16, head_dim, num=4, col="8 * ((q + lane / 16) ^ (lane % 8))", row="lane % 16 + 16 * rb")
    by_position = {segment.q: segment for segment in written_out.segments}
    for segment in report.segments:
        assert segment.addresses == by_position[segment.q].addresses


def test_software_xor_in_the_column_expression_is_free():
    assert ldmatrix(col="8 * (q ^ (lane % 8))").wavefronts == 1
    assert ldmatrix(col="8 * (q ^ (lane % 4))").wavefronts == 2


@pytest.mark.parametrize(
    ("layout", "wavefronts", "second_column"),
    [
        ({}, 32, [288, 544, 800, 1056, 1312, 1568, 1824]),
        ({"pad": 4}, 4, [304, 576, 848, 1120, 1392, 1664, 1936]),
        ({"swizzle": (3, 2, 4)}, 4, [304, 512, 784, 1120, 1392, 1600, 1872]),
    ],
)
def test_flash_attention_half2_tile(layout, wavefronts, second_column):
    """Rows of 64 half2: plain, padded by 4, and the 16-byte slot XOR-ed with row & 7; counts measured on sm_90."""
    report = ldmatrix(16, 64, "half2", num=4, **layout)
    assert {segment.wavefronts for segment in report.segments} == {wavefronts}
    assert list(segment_at(report, 2).addresses[:8]) == [32, *second_column]


# Arrangements


def test_x2_and_x4_point_at_16_rows_and_x4_at_two_segments():
    x2 = ldmatrix(num=2, swizzle=(3, 3, 3))
    assert x2.tile.rows == 16
    assert x2.segments[3].places == tuple((lane, 24) for lane in range(16))
    x4 = ldmatrix(num=4, swizzle=(3, 3, 3))
    assert [segment.q for segment in x4.segments] == [0, 2, 4, 6]
    assert x4.segments[1].places == tuple((lane % 16, 16 + 8 * (lane // 16)) for lane in range(32))
    assert (x2.wavefronts, x4.wavefronts) == (2, 4)
    assert (ldmatrix(num=2).wavefronts, ldmatrix(num=4).wavefronts) == (16, 32)


def test_x4_detail_names_the_matrix_and_register():
    detail = ldmatrix(num=4).at(13, 3)
    assert (detail.lane, detail.matrix) == (29, 3)
    assert [holder.lane for holder in detail.holders] == [20, 21, 22, 23]
    assert {holder.register for holder in detail.holders} == {3}


def test_given_places_equal_the_usual_ones():
    usual = ldmatrix(32, 32, num=4)
    written = ldmatrix(32, 32, num=4, row="16 * rb + lane % 16", col="8 * (q + lane / 16)")
    places = {(segment.row_block, segment.q): segment.places for segment in written.segments}
    for segment in usual.segments:
        assert places[segment.row_block, segment.q] == segment.places
    assert written.not_analysed  # q = 3 and rb = 2, 3 leave the tile


def test_what_does_not_fill_a_block_is_not_called_clean():
    report = ldmatrix(12, 68, pad=4, swizzle=None)
    assert report.not_analysed == (
        "rows 8-11: less than 8 rows remain",
        "columns 64-67: less than 8 columns remain",
    )


def test_element_sizes_share_the_byte_picture():
    halves = ldmatrix(8, 64, "half", swizzle=(3, 3, 3))
    for dtype, cols, swizzle in (("int8", 128, (3, 4, 3)), ("float", 32, (3, 2, 3)), ("bf16", 64, (3, 3, 3))):
        other = ldmatrix(8, cols, dtype, swizzle=swizzle)
        assert [segment.addresses for segment in other.segments] == [segment.addresses for segment in halves.segments]
    assert ldmatrix(8, 128, "int8").at(3, 1).holders[0].elements == ("A[3][16..17]", "A[3][18..19]")
    assert ldmatrix(8, 32, "tf32").at(3, 1).holders[1].elements == ("A[3][5] low half", "A[3][5] high half")


@pytest.mark.parametrize(("mode", "cols"), [("32B", 16), ("64B", 32), ("128B", 64)])
def test_tma_modes_are_free_on_rows_of_their_width(mode, cols):
    report = ldmatrix(64, cols, tma=mode)
    assert report.excess == 0
    assert report.warnings == ()
    assert ldmatrix(64, cols).excess > 0


def test_stmatrix_costs_the_same_and_needs_sm_90():
    assert ldmatrix(op="stmatrix", swizzle=(2, 3, 3)).wavefronts == ldmatrix(swizzle=(2, 3, 3)).wavefronts == 2
    with pytest.raises(BankcheckError, match="needs sm_90"):
        ldmatrix(op="stmatrix", arch="sm_80")
    with pytest.raises(BankcheckError, match="needs sm_75"):
        ldmatrix(arch="sm_70")
    assert any("measured on sm_90" in assumption for assumption in ldmatrix(arch="sm_80").assumptions)


# Swizzle facts


def test_the_same_map_on_bytes_and_elements():
    facts = ldmatrix(swizzle=(3, 3, 3)).swizzle
    assert facts is not None
    assert (str(facts.on_elements), str(facts.on_bytes)) == ("Swizzle<3,3,3>", "Swizzle<3,4,3>")
    assert facts == ldmatrix(swizzle_bytes=(3, 4, 3)).swizzle == ldmatrix(tma="128B").swizzle
    assert (facts.source, facts.target, facts.formula) == (
        "row bits 0-2",
        "column bits 3-5",
        "x ^ ((x & 0x1c0) >> 3)",
    )


@pytest.mark.parametrize(
    ("cols", "swizzle", "told"),
    [
        (32, (3, 3, 3), "row bits 1-3 onto column bits 3-4 and row bit 0: it changes row bits"),
        (128, (3, 3, 3), "column bit 6 and row bits 0-1 onto column bits 3-5: it reads column bits"),
        (64, (3, 3, 4), "row bits 1-3 onto column bits 3-5: it ignores the lowest row bits"),
        (64, (3, 3, -3), "it reads column bits"),
        (72, (3, 3, 3), "144 bytes apart, not a power of two"),
    ],
)
def test_warning_where_the_fields_are_not_the_row(cols, swizzle, told):
    report = ldmatrix(16, cols, swizzle=swizzle)
    assert any(told in warning for warning in report.warnings), report.warnings
    cost = "no conflict all the same" if report.excess == 0 else f"{report.wavefronts} wavefronts remain"
    assert any(cost in warning for warning in report.warnings)


@pytest.mark.parametrize(
    ("cols", "swizzle"), [(64, (3, 3, 3)), (64, (2, 3, 3)), (128, (3, 3, 4)), (32, (2, 3, 3)), (16, (1, 3, 3))]
)
def test_no_warning_where_the_row_is_xored_onto_the_segment(cols, swizzle):
    assert ldmatrix(64, cols, swizzle=swizzle).warnings == ()


def test_swizzle_that_leaves_the_tile_is_reported_and_fails_the_check():
    report = ldmatrix(swizzle=(1, 3, -7))
    assert report.swizzle is not None and not report.swizzle.one_to_one
    assert any("not one-to-one" in warning for warning in report.warnings)
    before, after = report.swizzle.escape
    assert before < 1024 <= after == Swizzle(1, 4, -7)(before)
    assert not ldmatrix(cols=8, swizzle=(1, 3, -7)).is_clean
    assert run("--cols", "8", "--swizzle", "1,3,-7", "--check")[0] == 1


swizzles = st.builds(
    lambda bits, base, gap, sign: Swizzle(bits, base, sign * (bits + gap)),
    st.integers(0, 4), st.integers(0, 5), st.integers(0, 4), st.sampled_from([1, -1]),
)  # fmt: skip


@given(swizzles, st.integers(1, 3000))
def test_escape_agrees_with_enumeration(swizzle, size):
    images = [swizzle(offset) for offset in range(size)]
    found = escape(swizzle, size)
    assert (found is None) == (sorted(images) == list(range(size)))
    if found is not None:
        assert found < size <= swizzle(found)


@given(swizzles, st.integers(0, 1 << 20), st.sampled_from([1, 2, 4]))
def test_swizzle_is_its_own_inverse_and_the_same_on_bytes(swizzle, offset, size):
    assert swizzle(swizzle(offset)) == offset
    byte = offset % size
    assert swizzle.scaled(size)(size * offset + byte) == size * swizzle(offset) + byte


def test_escape_is_quick_on_the_largest_tile():
    assert escape(Swizzle(1, 28, 1), 1 << 30) is None
    assert escape(Swizzle(1, 28, 1), (1 << 29) - 1) is None
    assert escape(Swizzle(10, 0, -20), 1 << 20) is not None


# An independent count


@settings(deadline=None)
@given(
    rows=st.integers(8, 40),
    segments=st.integers(1, 20),
    pad=st.integers(0, 9),
    num=st.sampled_from([1, 2, 4]),
    swizzle=st.none() | swizzles,
    base=st.integers(0, 20),
)
def test_counts_equal_brute_force(rows, segments, pad, num, swizzle, base):
    assume(num == 1 or rows >= 16)
    assume(num < 4 or segments >= 2)
    assume(swizzle is None or swizzle.base >= 3)
    cols = 8 * segments
    report = ldmatrix(rows, cols, num=num, pad=8 * pad, swizzle=swizzle, base_bytes=16 * base)
    height, width = (8 if num == 1 else 16), (2 if num == 4 else 1)
    expected = {}
    for block in range(rows // height):
        for q in range(0, segments - width + 1, width):
            addresses = []
            for lane in range(8 * num):
                element = (height * block + lane % height) * (cols + 8 * pad) + 8 * (q + lane // 16)
                addresses.append(16 * base + 2 * (swizzle(element) if swizzle else element))
            expected[block, q] = (brute_force(addresses), tuple(address // 16 % 8 for address in addresses))
    assert {(s.row_block, s.q): (s.wavefronts, s.groups) for s in report.segments} == expected
    assert all(s.ideal == num and s.excess == s.wavefronts - num for s in report.segments)
    assert report.wavefronts == max(count for count, _ in expected.values())


@settings(deadline=None)
@given(
    rows=st.sampled_from([8, 16, 24, 64]),
    cols=st.sampled_from([8, 16, 24, 32, 40, 64, 96, 128, 256]),
    num=st.sampled_from([1, 2, 4]),
)
def test_every_fix_is_free_when_asked_for(rows, cols, num):
    assume(num == 1 or rows >= 16)
    assume(num < 4 or cols >= 16)
    report = ldmatrix(rows, cols, num=num)
    assert bool(report.fixes) == bool(report.excess)
    for fix in report.fixes:
        swizzle = fix.tile.swizzle
        again = ldmatrix(rows, cols, num=num, pitch_bytes=fix.tile.pitch_bytes, swizzle_bytes=swizzle)
        assert again.is_clean and again.wavefronts == fix.wavefronts == num
        assert again.warnings == ()


def test_every_element_of_a_matrix_is_held_once():
    for num, forms in ((1, "holders"), (4, "holders_trans")):
        report = ldmatrix(num=num)
        held = {
            (holder.register, holder.lane): holder.elements
            for row in range(report.tile.rows)
            for q in range(2 if num == 4 else 1)
            for holder in getattr(report.at(row, q), forms)
        }
        assert len(held) == 32 * num
        elements = [element for pair in held.values() for element in pair]
        assert len(elements) == len(set(elements)) == 64 * num


# Errors


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"base_bytes": 8}, "row 0 starts at byte 8"),
        ({"cols": 65}, "row 1 starts at byte 130"),
        ({"col": "4"}, "lane 0 points at row 0, column 4: byte 8"),
        ({"rows": 10**12}, "too large"),
        ({"cols": 10**12}, "too large"),
        ({"rows": 10**5000}, "too large"),
        ({"pad": 10**12}, "too large"),
        ({"pitch_bytes": 10**12}, "too large"),
        ({"base_bytes": 10**12}, "not a place in shared memory"),
        ({"rows": 100_000}, "at most 4096 are counted"),
        ({"rows": 0}, "at least 1 row"),
        ({"cols": -1}, "at least 1 row"),
        ({"cols": 4}, "shorter than the 16 bytes"),
        ({"rows": 8, "num": 4}, "reads 16 rows, the tile has 8"),
        ({"cols": 8, "num": 4}, "reads 16 columns"),
        ({"num": 3}, "1, 2 or 4 matrices"),
        ({"op": "movmatrix"}, "not a matrix instruction"),
        ({"dtype": "double"}, "has 8 bytes"),
        ({"dtype": "quux"}, "not a data type"),
        ({"pad": -8}, "0 or more"),
        ({"pad": 8, "pitch_bytes": 144}, "not together"),
        ({"pitch_bytes": 64}, "overlap"),
        ({"pitch_bytes": 129}, "whole number of half"),
        ({"swizzle": (3, 2, 3)}, "takes the 16 consecutive bytes apart"),
        ({"swizzle": (3, 3, 2)}, "not a swizzle"),
        ({"swizzle": (3, 40, 3)}, "past bit 30"),
        ({"swizzle": (3, 3, 3), "tma": "128B"}, "one of"),
        ({"tma": "128B", "cols": 32}, "exactly 128 bytes"),
        ({"tma": "128B", "base_bytes": 512}, "multiple of 1024"),
        ({"tma": "256B"}, "not a TMA swizzle"),
        ({"arch": "sm_60"}, "older than Volta"),
        ({"row": "lane + 1"}, "lane 7 points at row 8"),
        ({"row": "-lane"}, "lane 1 points at row -1"),
        ({"row": "8 / (lane - 3)"}, "lane 3: division by zero"),
        ({"row": "lane << 1000"}, "shift"),
        ({"row": "9**9**9"}, ""),
        ({"row": "(" * 50_000}, "nested"),
        ({"row": "foo + lane"}, "unknown name 'foo'"),
        ({"col": "8 * (q"}, "unbalanced"),
        ({"col": ""}, "one C expression"),
        ({"col": "q; q"}, "one C expression"),
    ],
)
def test_errors_are_one_line(options, told):
    with pytest.raises(BankcheckError) as caught:
        ldmatrix(**options)
    assert told in caught.value.message
    assert "\n" not in caught.value.message


def test_error_in_an_expression_carries_a_caret():
    with pytest.raises(BankcheckError) as caught:
        ldmatrix(col="8 * (q ^ lan % 8)")
    assert caught.value.render().splitlines()[1:] == ["  8 * (q ^ lan % 8)", "           ^^^"]


def test_a_place_no_lane_points_at():
    with pytest.raises(BankcheckError, match="no lane points at row 8, segment 0"):
        ldmatrix().at(8, 0)


@pytest.mark.parametrize("arguments", [("--swizzle", "3,3"), ("--swizzle", "a,b,c"), ("--at", "5"), ("--at", "9,9")])
def test_command_refuses_malformed_numbers(arguments):
    with pytest.raises(BankcheckError):
        run(*arguments)


# The command


def test_exit_codes():
    assert run()[0] == 0
    assert run("--check")[0] == 1
    assert run("--check", "--swizzle", "3,3,3")[0] == 0


def test_json_has_the_fields_of_the_report():
    document = json.loads(run("--swizzle", "3,3,3", "--format", "json", "--at", "5,0", "--compare")[1])
    assert (document["schema"], document["instruction"], document["basis"]) == (1, "ldmatrix.x1", "computed")
    assert (document["wavefronts"], document["ideal"], document["excess"], document["ways"]) == (1, 1, 0, 1)
    assert document["segments"][3]["groups"] == [3, 2, 1, 0, 7, 6, 5, 4]
    assert document["swizzle"]["on_bytes"] == "Swizzle<3,4,3>"
    assert document["at"]["stored_bytes"] == 720
    assert [entry["wavefronts"] for entry in document["compare"]] == [8, None, 1, 1]
    assert document["tile"]["storage_bytes"] == 1024


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("plain", ""),
        ("swizzled", "--swizzle 3,3,3"),
        ("at", "--swizzle 3,3,3 --at 5,0"),
        ("compare", "--compare"),
        ("compare_pad", "--pad 4 --cols 32 --rows 16 --compare"),
        ("x4", "--num 4 --rows 32 --cols 32"),
        ("wrong_width", "--cols 128 --swizzle 3,3,3"),
        ("compact", "--cols 8 --swizzle 3,3,3"),
        ("places", "--rows 12 --col 8*(q+lane%8) --arch sm_80"),
    ],
)
def test_golden(name, arguments, golden):
    text = run(*arguments.split())[1]
    assert all(len(line) <= 80 for line in text.splitlines())
    golden(f"ldmatrix_{name}.txt", text)


def test_start_up_is_light():
    code = (
        "import sys; from bankcheck.matrix.model import ldmatrix; import bankcheck.report.ldmatrix; ldmatrix().fixes; "
        "print([m for m in ('sympy', 'numpy', 'rich', 'tree_sitter') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
