"""Opcode semantics: kernels whose addresses are computed here in Python, and integer opcodes against exact integers."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bankcheck.banks import count_wavefronts
from bankcheck.compiled import sass
from bankcheck.compiled.operations import compile_step, new_slots
from bankcheck.compiled.profile import Limits
from bankcheck.compiled.results import UNKNOWN
from bankcheck.compiled.values import Value
from compiled.support import Built

A, B, C, W = 13, 90, 1234567, 0x5_0000_0001
M32 = 0xFFFFFFFF


def _trunc(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _s32(x: int) -> int:
    return (x + (1 << 31)) % (1 << 32) - (1 << 31)


def _f32(x: float) -> float:
    return struct.unpack("f", struct.pack("f", x))[0]


def _perm(a: int, b: int, selector: int) -> int:
    data = (a & M32) | (b & M32) << 32
    return sum((data >> 8 * (selector >> 4 * i & 7) & 255) << 8 * i for i in range(4))


def _shuffles(t: int) -> int:
    warp, lane = t & ~31, t & 31
    down = warp + (lane + 3 if lane + 3 < 32 else lane)
    return ((warp | (lane ^ 5)) * 7) + down + (warp + (lane & 16 | 9))


def _warp(t: int) -> range:
    return range(t & ~31, (t & ~31) + 32)


def _alike(t: int, key: Callable[[int], int]) -> int:
    return sum(1 << (k & 31) for k in _warp(t) if key(k) == key(t))


def _lowest(mask: int) -> int:
    return (mask & -mask).bit_length()


EXPECTED: dict[str, Callable[[int], int]] = {
    "quotient": lambda t: t * 1000 // A,
    "remainder": lambda t: (t * 77 + 5) % A,
    "unsigned_quotient": lambda t: (t * 4000000 & M32) // C,
    "negative_quotient": lambda t: _trunc((t - 40) * 1000, A),
    "by_constant": lambda t: t * 1001 // 7 + t * 33 % 11,
    "negative_by_constant": lambda t: _trunc((t - 64) * 9999, 10),
    "shifts": lambda t: (t << (t & 15)) ^ ((t * 0x9E3779B9 & M32) >> 20) ^ ((t - 50) >> 2),
    "wide_shift": lambda t: t * 0x123456789 >> (t & 31),
    "wide_product": lambda t: (t - 30) * W >> 33,
    "high_product": lambda t: ((t * 0x9E3779B9 & M32) * 0xDEADBEEF >> 32) + ((t - 20) * 0x7654321 >> 32),
    "select_minimum": lambda t: min(max(t - 10, A), B) * 3,
    "absolute": lambda t: abs(t - 37) * 5,
    "population": lambda t: (t * 0x9E3779B9 & M32).bit_count() * 64 + t,
    "reversed": lambda t: int(f"{t:032b}"[::-1], 2) >> 20,
    "leading": lambda t: (t * t + 1).bit_length() * 128 - 128 + t,
    "bytes": lambda t: _perm(t * 0x01020304, t + 7, 0x5140),
    "sign_extended": lambda t: (t * 5 + 128) % 256 - 128 + 2000,
    "sixteen_bits": lambda t: _trunc((t * 1111 + 32768) % 65536 - 32768, 16) + 2048,
    "logic": lambda t: (t & 0x55) | ((t ^ 0x2A) & ~C),
    "three_way": lambda t: (t & A) ^ (t | B) ^ ~t,
    "wide_compare": lambda t: t * 2 if t * 0x40000000 > W else t * 3,
    "wide_modulo": lambda t: t * 12345 % 1021,
    "rounded": lambda t: int(_f32(t * 0.3700000047683716 + 1.5)),
    "ballot": lambda t: sum(1 for k in range(t & ~31, t) if k % 3 == 0) * 32 + (t & 31),
    "shuffled": _shuffles,
    "voted": lambda t: (100 if (t & ~31) + 31 < 40 else 200) + (7 if t & ~31 == 64 else 3) * t,
    "of_three": lambda t: min(t * 3, A * 4, 150 - t) + max(t, A, B),
    "long_quotient": lambda t: _trunc(t * 1000000007 - 40000000000, W >> 3),
    "long_remainder": lambda t: t * 1000000007 % (W // 77),
    "root": lambda t: int((math.isqrt(8 * t + 1) - 1) / 2) * 32 + t,
    "in_doubles": lambda t: int(t * A + 0.5 * t - 7.25) + 64,
    "rounded_down": lambda t: (
        math.floor(_f32(_f32(t * _f32(0.7)) - 9)) + math.ceil(_f32(t * _f32(0.3))) + round(t * 0.5) + 64
    ),
    "matched": lambda t: _alike(t, lambda k: k % A).bit_count() * 32 + _lowest(_alike(t, lambda k: k // 3)),
    "reduced": lambda t: max(k * 7 % A for k in _warp(t)) * 32 + sum(k & 3 for k in _warp(t)) + t,
    "lane_masks": lambda t: ((1 << (t & 31)) - 1) >> 3,
}


@pytest.mark.parametrize("kernel", EXPECTED)
def test_addresses_known_in_python(opcodes: Built, kernel: str) -> None:
    profile = opcodes.profile(kernel, "96", "1", f"1={A}", f"2={B}", f"3={C}", f"4={W}")
    store = next(row for row in profile.instructions if "STS" in row.sass)
    wanted = ideal = 0
    for warp in range(3):
        addresses = [4 * (EXPECTED[kernel](t) & 4095) for t in range(32 * warp, 32 * warp + 32)]
        traffic = count_wavefronts("st.shared.b32", addresses)
        wanted, ideal = wanted + traffic.wavefronts, ideal + traffic.ideal
    assert (store.status, store.shared_wavefronts, store.shared_ideal) == ("computed", wanted, ideal)


def test_a_shift_that_the_warp_shares_does_not_matter(opcodes: Built) -> None:
    """Unknown data that moves all lanes alike leaves the count exact, unless it moves them within words."""
    profile = opcodes.profile("uniform_data", "32")
    stores = [row for row in profile.instructions if "STS" in row.sass]
    assert [(row.status, row.ways) for row in stores[:3]] == [("computed", 1), ("computed", 2), ("computed", 1)]
    assert stores[3].status == UNKNOWN and stores[3].shared_wavefronts is None and "data" in stores[3].reason


def test_nsight_prints_more_than_the_hardware_counts(opcodes: Built) -> None:
    """16-byte loads whose lanes alternate between bytes 0 and 512: the clock says 4, Nsight's model 8."""
    profile = opcodes.profile("wide_loads", "32")
    load = next(row for row in profile.instructions if row.sass.startswith("LDS.128"))
    assert (load.shared_wavefronts, load.ncu_wavefronts) == (4, 8)


@pytest.mark.parametrize("choose", [0, 1])
def test_a_generic_pointer_reaches_either_space(opcodes: Built, choose: int) -> None:
    profile = opcodes.profile("generic_pointer", "64", "1", f"1={choose}")
    store = next(row for row in profile.instructions if row.space == "generic")
    assert (store.shared_wavefronts, store.global_sectors) == ((4, 0) if choose else (0, 16))


def test_structures_can_be_given_in_part(opcodes: Built) -> None:
    given_words = ("0@0=ptr", "0@8=ptr", "0@16=12", "0@20=128")
    profile = opcodes.profile("structure", "128", "1", *given_words)
    assert all(row.status == "computed" for row in profile.instructions)
    assert sum(row.execs for row in profile.instructions if "STS" in row.sass) == 12 * 4
    nothing = opcodes.profile("structure", "128")
    assert any("unknown" in note for note in nothing.assumptions)
    assert any(row.status == UNKNOWN for row in nothing.instructions)


def test_constant_tables_are_an_assumption(opcodes: Built) -> None:
    profile = opcodes.profile("tables", "64")
    assert "__constant__ memory holds its initial values" in profile.assumptions
    store = next(row for row in profile.instructions if "STS" in row.sass)
    words = [[[0, 5, 2, 7, 4, 1, 6, 3][t & 7] * 32 + (t >> 3) for t in range(w, w + 32)] for w in (0, 32)]
    assert store.shared_wavefronts == sum(
        count_wavefronts("st.shared.b32", [4 * x for x in row]).wavefronts for row in words
    )


def test_blocks(opcodes: Built) -> None:
    """All blocks of a small grid are run; of a large one some, and the profile says which."""
    small = opcodes.profile("by_block", "128", "5", "2=600")
    assert small.blocks_run == 5
    assert sum(row.threads for row in small.instructions if "STS" in row.sass) == 600
    large = opcodes.profile("by_block", "128", "100000", "2=12800000")
    assert large.blocks_run == 4 and any("4 of 100000 blocks were run" in note for note in large.assumptions)
    stores = [row for row in large.instructions if "STS" in row.sass]
    assert {row.status for row in stores} == {"assumed"} and sum(row.threads for row in stores) == 12_800_000
    cut = opcodes.profile("by_block", "128", "100000", "2=12799990")
    assert sum(row.threads for row in cut.instructions if "STS" in row.sass) == 12_799_990, "the last block is cut off"
    mixed = opcodes.profile("by_block", "128", "100000", "2=6400064")
    assert any("counts are for these" in note for note in mixed.assumptions), "blocks of one kind differ"
    chosen = opcodes.profile("by_block", "128", "100000", "2=12800000", limits=Limits(blocks=7))
    assert chosen.blocks_run == 7 and sum(row.threads for row in chosen.instructions if "STS" in row.sass) == 7 * 128


def test_spilled_addresses_stay_exact_or_unknown(opcodes: Built) -> None:
    profile = opcodes.profile("spilled", "64", "1", "1=3")
    for row in profile.instructions:
        if row.space == "shared" and row.status == "computed" and row.execs and row.sass.startswith("LDS"):
            assert row.shared_wavefronts > 0


# Integer opcodes against exact integers.

words = st.one_of(st.integers(0, M32), st.sampled_from([0, 1, 2, 31, 32, 33, 0x7FFFFFFF, 0x80000000, M32]))


def _run(text: str, registers: dict[str, int], predicates: dict[str, bool] | None = None) -> dict[str, int]:
    """Execute one instruction with the given register contents; the registers and predicates it writes."""
    name, _, operands = text.partition(" ")
    instruction = sass.decoded(0, name, operands, "", text)
    slots = new_slots(32, lambda bank, offset: (0, "not given"))
    step = compile_step(instruction, slots)
    assert step is not None, text
    for register, word in registers.items():
        slots.values[sass.register(register)] = Value(np.full(32, word, np.uint32))
    for predicate, value in (predicates or {}).items():
        slots.values[sass.P + int(predicate[1:])] = Value(np.full(32, value, np.bool_))
    results = step.compute(step.read(slots.values), np.ones(32, np.bool_), slots.unknowns)
    names = {index: f"P{index - sass.P}" if index >= sass.P else f"R{index}" for index, _ in results}
    return {names[index]: int(value.known[0]) for index, value in results}


@settings(max_examples=60, deadline=None)
@given(words, words, words, st.booleans(), st.booleans())
def test_sums_with_carry(a: int, b: int, c: int, x: bool, y: bool) -> None:
    registers, predicates = {"R1": a, "R2": b, "R3": c}, {"P0": x, "P1": y}
    plain = _run("IADD3 R0,P4,P5,R1,R2,R3", registers)
    assert (plain["P4"] + plain["P5"] << 32) + plain["R0"] == a + b + c
    assert _run("IADD3.X R0,R1,R2,R3,P0,P1", registers, predicates)["R0"] == (a + b + c + x + y) & M32
    difference = _run("IADD3 R0,P4,R1,-R2,RZ", registers)
    assert (difference["R0"], difference["P4"]) == ((a - b) & M32, a >= b)
    assert _run("VIADD R0,R1,-R2", registers)["R0"] == (a - b) & M32


@settings(max_examples=60, deadline=None)
@given(words, words, words, words)
def test_products(a: int, b: int, c: int, d: int) -> None:
    registers = {"R2": a, "R3": b, "R4": c, "R5": d}
    addend = c | d << 32
    assert _run("IMAD R0,R2,R3,R4", registers)["R0"] == (a * b + c) & M32
    wide = _run("IMAD.WIDE.U32 R0,R2,R3,R4", registers)
    assert wide["R0"] | wide["R1"] << 32 == (a * b + addend) & (1 << 64) - 1
    wide = _run("IMAD.WIDE R0,R2,R3,R4", registers)
    assert wide["R0"] | wide["R1"] << 32 == (_s32(a) * _s32(b) + addend) & (1 << 64) - 1
    wide = _run("IMAD.WIDE R0,R2,R3,-R4", registers)
    assert wide["R0"] | wide["R1"] << 32 == (_s32(a) * _s32(b) - addend) & (1 << 64) - 1
    assert _run("IMAD.HI.U32 R0,R2,R3,R4", registers)["R0"] == (a * b + addend >> 32) & M32
    assert _run("IMAD.HI R0,R2,R3,R4", registers)["R0"] == (_s32(a) * _s32(b) + addend >> 32) & M32


@settings(max_examples=60, deadline=None)
@given(words, words, words, st.integers(0, 31))
def test_shifts_and_lea(a: int, b: int, c: int, s: int) -> None:
    registers = {"R1": a, "R2": b, "R3": c}
    assert _run("SHF.L.U32 R0,R1,R2,RZ", registers)["R0"] == (a << min(b, 32)) & M32
    assert _run("SHF.R.U32.HI R0,RZ,R2,R1", registers)["R0"] == a >> min(b, 32)
    assert _run("SHF.R.S32.HI R0,RZ,R2,R1", registers)["R0"] == (_s32(a) >> min(b, 32)) & M32
    assert _run(f"SHF.L.U64.HI R0,R1,{s:#x},R3", registers)["R0"] == (a | c << 32) << s >> 32 & M32
    assert _run(f"SHF.R.U64 R0,R1,{s:#x},R3", registers)["R0"] == (a | c << 32) >> s & M32
    lea = _run(f"LEA R0,P0,R1,R2,{s:#x}", registers)
    assert (lea["P0"] << 32) + lea["R0"] == (a << s & M32) + b
    assert _run(f"LEA.HI R0,R1,R2,RZ,{s:#x}", registers)["R0"] == ((a << s >> 32) + b) & M32
    assert (
        _run(f"LEA.HI.X R0,R1,R2,R3,{s:#x},P1", registers, {"P1": True})["R0"]
        == (((a | c << 32) << s >> 32) + b + 1) & M32
    )
    assert _run(f"LEA.HI.SX32 R0,R1,R2,{s:#x}", registers)["R0"] == ((_s32(a) << s >> 32) + b) & M32


@settings(max_examples=60, deadline=None)
@given(words, words, words, st.integers(0, 255), st.booleans())
def test_logic_and_comparisons(a: int, b: int, c: int, table: int, p: bool) -> None:
    registers, predicates = {"R1": a, "R2": b, "R3": c}, {"P1": p, "P2": not p}
    bits = 0
    for at in range(32):
        bits |= (table >> ((a >> at & 1) * 4 + (b >> at & 1) * 2 + (c >> at & 1)) & 1) << at
    result = _run(f"LOP3.LUT P0,R0,R1,R2,R3,{table:#x},!PT", registers)
    assert (result["R0"], result["P0"]) == (bits, bits != 0)
    for name, test in {"LT": a < b, "LE": a <= b, "GT": a > b, "GE": a >= b, "EQ": a == b, "NE": a != b}.items():
        found = _run(f"ISETP.{name}.U32.AND P0,P3,R1,R2,P1", registers, predicates)
        assert (found["P0"], found["P3"]) == (test and p, not test and p)
    signed = _run("ISETP.LT.OR P0,PT,R1,R2,P1", registers, predicates)
    assert signed["P0"] == (_s32(a) < _s32(b) or p)
    low = _run("ISETP.LT.U32.AND P4,PT,R3,R1,PT", registers)["P4"]
    both = _run("ISETP.LT.AND.EX P0,PT,R1,R2,PT,P4", registers, {"P4": bool(low)})["P0"]
    assert both == ((_s32(a) << 32 | c) < (_s32(b) << 32 | a))
    assert _run("SEL R0,R1,R2,P1", registers, predicates)["R0"] == (a if p else b)
    assert _run("VIMNMX R0,R1,R2,PT", registers)["R0"] == min(_s32(a), _s32(b)) & M32
    assert _run("VIMNMX.U32 R0,R1,R2,!PT", registers)["R0"] == max(a, b)


@settings(max_examples=60, deadline=None)
@given(words, words, words)
def test_bytes_and_bits(a: int, b: int, selector: int) -> None:
    registers = {"R1": a, "R2": selector, "R3": b}
    data = a | b << 32
    expected = 0
    for at in range(4):
        nibble = selector >> 4 * at & 15
        byte = data >> 8 * (nibble & 7) & 255
        expected |= ((255 if byte & 128 else 0) if nibble & 8 else byte) << 8 * at
    assert _run("PRMT R0,R1,R2,R3", registers)["R0"] == expected
    assert _run("POPC R0,R1", registers)["R0"] == a.bit_count()
    assert _run("BREV R0,R1", registers)["R0"] == int(f"{a:032b}"[::-1], 2)
    assert _run("FLO.U32 R0,R1", registers)["R0"] == (a.bit_length() - 1) & M32
    assert _run("FLO.U32.SH R0,R1", registers)["R0"] == (32 - a.bit_length() if a else M32)
    assert _run("IABS R0,R1", registers)["R0"] == abs(_s32(a)) & M32
    assert _run("SGXT R0,R1,0x8", registers)["R0"] == ((a + 128) % 256 - 128) & M32
    assert _run("SGXT.U32 R0,R1,0xc", registers)["R0"] == a & 0xFFF


@settings(max_examples=60, deadline=None)
@given(words, words, words)
def test_the_least_and_largest_of_three(a: int, b: int, c: int) -> None:
    registers = {"R1": a, "R2": b, "R3": c}
    assert _run("VIMNMX3 R0,R1,R2,R3,PT", registers)["R0"] == min(map(_s32, (a, b, c))) & M32
    assert _run("VIMNMX3.U32 R0,R1,R2,R3,!PT", registers)["R0"] == max(a, b, c)


def _double_words(x: float) -> tuple[int, int]:
    bits = int.from_bytes(struct.pack("<d", x), "little")
    return bits & M32, bits >> 32


finite = st.floats(min_value=-1e15, max_value=1e15)


@settings(max_examples=60, deadline=None)
@given(finite, finite, finite)
def test_doubles(a: float, b: float, c: float) -> None:
    """One rounding each, like exact fractions rounded to float64."""
    registers: dict[str, int] = {}
    for name, number in ((2, a), (4, b), (6, c)):
        registers[f"R{name}"], registers[f"R{name + 1}"] = _double_words(number)

    def result(text: str) -> float:
        found = _run(text, registers)
        return struct.unpack("<d", struct.pack("<II", found["R0"], found["R1"]))[0]

    assert result("DADD R0,R2,-R4") == a - b
    assert result("DMUL R0,R2,R4") == a * b
    assert result("DFMA R0,R2,R4,R6") == float(Fraction(a) * Fraction(b) + Fraction(c))
    assert result("DADD R0,|R2|,0.5") == abs(a) + 0.5
    whole = _run("F2I.F64.TRUNC R0,R2", registers)["R0"]
    assert whole == min(max(math.trunc(a), -(1 << 31)), (1 << 31) - 1) & M32
    assert _run("DSETP.LT.AND P0,PT,R2,R4,PT", registers)["P0"] == (a < b)


@settings(max_examples=60, deadline=None)
@given(words, words)
def test_long_integers_and_floats(low: int, high: int) -> None:
    number = low | high << 32
    upward = _run("I2F.U64.RP R0,R2", {"R2": low, "R3": high})["R0"]
    above, below = (struct.unpack("<f", struct.pack("<I", max(0, upward - step)))[0] for step in (0, 1))
    assert Fraction(above) >= number and (Fraction(below) < number or number == 0)
    back = _run("F2I.U64.TRUNC R0,R2", {"R2": upward})
    assert back["R0"] | back["R1"] << 32 == min(int(above), (1 << 64) - 1)


@settings(max_examples=100, deadline=None)
@given(st.floats(width=32, min_value=2**-40, max_value=2**40), st.floats(width=32, min_value=2**-40, max_value=2**40))
def test_directed_products(a: float, b: float) -> None:
    """Rounded toward zero: the largest float32 that is not above the exact product."""
    word, other = (int.from_bytes(struct.pack("<f", x), "little") for x in (a, b))
    found = _run("FMUL.RZ R0,R1,R2", {"R1": word, "R2": other})["R0"]
    low, high = (struct.unpack("<f", struct.pack("<I", found + step))[0] for step in (0, 1))
    assert Fraction(low) <= Fraction(a) * Fraction(b) < Fraction(high)


def test_an_opcode_that_is_not_modelled_is_never_guessed() -> None:
    slots = new_slots(32, lambda bank, offset: (0, "not given"))
    for text in ("FFMA.RZ R0,R1,R2,R3", "IADD3.RELU R0,R1,R2,R3", "FROB R0,R1", "LOP3.LUT R0,R1.H0_H0,R2,RZ,0xc0,!PT"):
        name, _, operands = text.partition(" ")
        assert compile_step(sass.decoded(0, name, operands, "", text), slots) is None, text
