"""Faults that were found once, each with the whole kind it belongs to."""

from __future__ import annotations

import time

import pytest

import bankcheck


@pytest.mark.parametrize(("op", "rows"), [("ldmatrix.x1", 8), ("ldmatrix.x2", 16), ("ldmatrix.x2.trans", 16)])
@pytest.mark.parametrize("address", ["&s[lane][0]", "&s[0][0] + (lane < {rows} ? 8 * lane : 1)"])
def test_lanes_that_ldmatrix_ignores_may_point_anywhere(op: str, rows: int, address: str) -> None:
    """Out of range or misaligned addresses of the other lanes are no fault: they are not read."""
    front = f"__shared__ __align__(16) half s[{rows}][8];"
    analysis = bankcheck.analyze(f"{front} {address.format(rows=rows)}", op=op)
    assert analysis.wavefronts == rows // 8
    traffic = analysis.worst.traffic
    assert traffic is not None and [at is None for at in traffic.addresses] == [lane >= rows for lane in range(32)]


@pytest.mark.parametrize("symbols", ["ab", "abc", "abcdefgh"])
def test_without_a_proof_some_values_are_tried(symbols: str) -> None:
    """However many unknowns there are, a few values of each are counted, and said not to be a proof."""
    analysis = bankcheck.analyze(f"s[{' * '.join(symbols)} * tx / (a + 1)]")
    assert analysis.basis == "computed"
    assert "tried a in " in analysis.not_proved and f"; {symbols[-1]} in " in analysis.not_proved


@pytest.mark.parametrize(
    "expression", ["(warp * 40001 + tx) >> 14", "(warp * 30001 + tx) / 9973", "(warp * 30000 + tx) % 9973"]
)
def test_the_warp_is_never_what_is_missing(expression: str) -> None:
    """Few values are told apart one by one where a residue would need a large modulus."""
    assert bankcheck.analyze(f"s[{expression} + j]", block=(128,)).basis == "proved"


@pytest.mark.parametrize(
    "index",
    ["*".join(["a"] * 60) + "*tx", "*".join(["(a + b + c + tx)"] * 12), "*".join(["(a * a + tx)"] * 20)],
    ids=["power", "many terms", "square"],
)
def test_long_products_end_soon(index: str) -> None:
    started = time.perf_counter()
    analysis = bankcheck.analyze(f"s[{index}]")
    assert time.perf_counter() - started < 20  # it was minutes
    assert analysis.basis == "computed" and "multiplies too many unknowns" in analysis.not_proved


@pytest.mark.parametrize(
    "expression",
    ["s[/* column */ tx]", "s[tx // column\n]", "s[min(/* a */ tx, 31)]", "s[(/* b */ tx)]", "(/* c */ s)[tx]",
     "*static_cast<float* /* d */>(&s[tx])", "s[sizeof(/* e */ float) * tx / 4]", "/* f */ s[tx]", "s[tx] // g"],
)  # fmt: skip
def test_comments_anywhere(expression: str) -> None:
    assert bankcheck.analyze(f"__shared__ float s[256]; {expression}").wavefronts == 1


@pytest.mark.parametrize("expression", ["(tile[tx])[ty]", "((tile)[tx])[ty]", "((tile[tx])[ty])"])
def test_parentheses_around_part_of_an_access(expression: str) -> None:
    assert bankcheck.analyze(expression).wavefronts == bankcheck.analyze("tile[tx][ty]").wavefronts == 32


@pytest.mark.parametrize("options", [{"dtype": ""}, {"dtype": "void"}, {"dtype": "int x"}, {"where": ""}])
def test_empty_and_meaningless_options_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(bankcheck.BankcheckError):
        bankcheck.analyze("s[tx]", **options)


@pytest.mark.parametrize(
    ("literal", "equals"),
    [
        ("-8u", "4294967288u"),
        ("-1u", "0xffffffff"),
        ("-010", "0 - 8"),
        ("-0x10", "0 - 16"),
        ("-0b11", "0 - 3"),
        ("-3000000000", "0 - 3000000000"),
        ("-1ull", "18446744073709551615ull"),
        ("+7u", "7u"),
        ("- 8u", "4294967288u"),
    ],
)
def test_signed_literals(literal: str, equals: str) -> None:
    """A sign is an operator, so -8u is 4294967288; `where` is 32 active lanes exactly if both are equal."""
    for condition in (f"({literal}) == ({equals})", f"sizeof({literal}) == sizeof({equals})"):
        assert bankcheck.analyze("s[4 * tx]", where=condition).wavefronts == 4
    assert bankcheck.analyze("s[4 * tx]", where=f"({literal}) != ({equals})").wavefronts == 0


def test_an_unsigned_wrap_that_may_change_the_count_is_an_assumption() -> None:
    """2*(unsigned)s*tid wraps modulo 2^32 for large s, where lanes can meet: the proof lists that as assumed."""
    wraps = bankcheck.analyze("int index = 2*(unsigned)s*tid; data[index]")
    assert wraps.basis == "proved" and "unsigned index arithmetic does not wrap past 2^32" in wraps.assumptions
    small = bankcheck.analyze("data[threadIdx.x + (unsigned)s]")
    assert not any("wrap" in assumption for assumption in small.assumptions)


@pytest.mark.parametrize(
    ("access", "options", "wavefronts"),
    [
        ("__shared__ float s[128]; *(float*)((unsigned long long)s + 4*tx)", {}, 1),
        ("__shared__ float s[128]; *(float*)((unsigned)(s + 1) + 8*tx)", {}, 2),
        ("__shared__ float s[16][33]; *((float*)((unsigned long long)s[tx % 8] + 4) + 32*(tx / 8))", {}, 4),
        ("__shared__ float s[1024]; __cvta_generic_to_shared(s) + 32*tx", {"op": "ldmatrix.x4"}, 8),
    ],
)
def test_an_address_as_a_number_counts_bytes(access: str, options: dict[str, str], wavefronts: int) -> None:
    assert bankcheck.analyze(access, **options).wavefronts == wavefronts


@pytest.mark.parametrize("align", ["__align__(16)", "alignas(16)", "alignas(float4)"])
def test_a_declared_alignment_is_not_assumed(align: str) -> None:
    access = f"__shared__ {align} float s[128]; *(float4*)&s[4*tx]"
    assert not any("aligned" in text for text in bankcheck.analyze(access).assumptions)
    assert any("aligned" in text for text in bankcheck.analyze(access.replace(align, "")).assumptions)
