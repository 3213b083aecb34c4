"""How the hardware serves one shared-memory request: facts as rows, each with its source.

Shared memory has 32 banks. A *word* is 4 bytes; word number = byte address / 4; bank = word mod 32.

A warp's 32 lanes issue one *request*. The hardware cuts the request into *service groups* of lanes
(all 32 lanes for accesses of up to 4 bytes, 16 lanes for 8 bytes, 8 lanes for 16 bytes) and serves
the groups one after the other. Within a group every bank delivers one word per *wavefront*, to as
many lanes as ask for that word. So a group costs as many wavefronts as its busiest bank has distinct
words, and a request costs the sum over its groups:

    8 lanes x 16 B, lane i at byte 16*i     every bank has 1 word     1 wavefront per group, 4 in all
    32 lanes x 4 B, lane i at byte 128*i    bank 0 has 32 words       32 wavefronts
    32 lanes x 4 B, all lanes at byte 0     bank 0 has 1 word         1 wavefront (a broadcast)

The rows below say, for each instruction, which lanes form a group, whether distinct *words* or
requesting *lanes* are counted (atomics and cp.async.ca serve one lane at a time), whether groups merge under the
*pair condition*, and where the rule comes from. Everything in this file is data; `banks` counts with it.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from bankcheck.errors import BankcheckError

BANKS = 32
WORD_BYTES = 4
WARP_LANES = 32
ROW_BYTES = BANKS * WORD_BYTES
"""One word from every bank: the address range after which banks repeat."""
SECTOR_BYTES = 32
"""The unit of global-memory traffic (CUDA C++ Best Practices Guide)."""
PAIR_DISTANCES = (1, 2)
"""The pair condition: every lane i agrees with lane i ^ d (same address, or one inactive), for one of these d."""
ROW_QUEUES = 4
"""cp.async.cg queues its 128-byte row writes by row number mod this (measured on sm_90)."""

Groups = tuple[tuple[int, ...], ...]


def _groups_of(lanes: int, *, first: int = WARP_LANES) -> Groups:
    """Lanes 0..first-1 cut into runs of `lanes`."""
    return tuple(tuple(range(start, start + lanes)) for start in range(0, first, lanes))


WARP: Groups = _groups_of(32)
HALVES: Groups = _groups_of(16)
QUARTERS: Groups = _groups_of(8)

MEASURED = "measured on sm_90 (NVIDIA H200)"
PTX = "PTX ISA: every group of 8 lanes supplies one matrix's row addresses; " + MEASURED


class Rule(NamedTuple):
    """How one instruction is served.

    `groups` lists the lanes served together; a load for which the pair condition holds is served as
    `merged_groups` instead (empty: never merges). `counts` is what a bank serialises: distinct words,
    or requesting lanes. `multiplier` scales the sum. `loop` is set where the instruction compiles to a
    loop whose cost depends on data: no count is predicted then, and the text says why. `not_ptx` is set where
    only the compiler makes the instruction: no PTX can ask for it, and the text says what it is made of.
    """

    instruction: str
    bytes_per_lane: int
    groups: Groups
    source: str
    counts: Literal["words", "lanes"] = "words"
    merged_groups: Groups = ()
    multiplier: int = 1
    matrices: int = 0
    row_writes: bool = False
    loop: str = ""
    not_ptx: str = ""


AGGREGATED = "red.shared.aggregated.u32"
"""An atomic whose lanes are added up per address before memory sees them."""


def _rows() -> list[Rule]:
    rows = []
    for space in ("shared", "generic"):
        for kind in ("ld", "st"):
            # Loads through a generic address do not merge (counter and clock agree); stores never merge.
            merges = kind == "ld" and space == "shared"
            merged_64 = WARP if merges else ()
            merged_128 = HALVES if merges else ()
            name = f"{kind}.{space}.b"
            rows += [Rule(f"{name}{bits}", bits // 8, WARP, MEASURED) for bits in (8, 16, 32)]
            rows.append(Rule(f"{name}64", 8, HALVES, MEASURED, merged_groups=merged_64))
            rows.append(Rule(f"{name}128", 16, QUARTERS, MEASURED, merged_groups=merged_128))

    for kind in ("ldmatrix", "stmatrix"):
        for matrices in (1, 2, 4):
            rule = Rule(f"{kind}.x{matrices}", 16, _groups_of(8, first=8 * matrices), PTX, matrices=matrices)
            rows += [rule, rule._replace(instruction=rule.instruction + ".trans")]

    atomic = Rule("", 4, WARP, MEASURED, counts="lanes")
    for kind in ("atom", "red"):
        for operation in ("add", "min", "max", "and", "or", "xor", "exch", "inc", "dec"):
            for kind_type in ("u32", "s32", "b32"):
                rows.append(atomic._replace(instruction=f"{kind}.shared.{operation}.{kind_type}"))
        for kind_type, width in (("f32", 4), ("f64", 8), ("f16x2", 4), ("bf16x2", 4), ("u64", 8), ("s64", 8)):
            name = f"{kind}.shared.add.{kind_type}"
            loop = f"{name} compiles to a compare-and-swap loop: its cost depends on data and contention"
            rows.append(Rule(name, width, WARP, MEASURED, counts="lanes", loop=loop))
    rows.append(atomic._replace(instruction="atom.shared.cas.b32", multiplier=2))
    rows.append(Rule("atom.shared.cas.b64", 8, HALVES, MEASURED, counts="lanes", multiplier=2))

    # Lanes with the same address are one; 28 address patterns agree with the counter.
    made_of = "nvcc makes it (ATOMS.POPC.INC) of a 32-bit atomicAdd(p, 1) whose result is not used"
    rows.append(Rule(AGGREGATED, 4, WARP, MEASURED, not_ptx=f"{AGGREGATED} is no PTX instruction: {made_of}"))

    rows.append(atomic._replace(instruction="cp.async.ca.4"))
    rows.append(Rule("cp.async.ca.8", 8, HALVES, MEASURED, counts="lanes"))
    rows.append(Rule("cp.async.ca.16", 16, QUARTERS, MEASURED, counts="lanes"))
    rows.append(Rule("cp.async.cg.16", 16, QUARTERS, MEASURED + "; row passes by clock", row_writes=True))
    return rows


RULES: dict[str, Rule] = {rule.instruction: rule for rule in _rows()}
_ALIASES = {
    "ld.shared.v2.b64": "ld.shared.b128", "ld.shared.v4.b32": "ld.shared.b128", "ld.shared.v2.b32": "ld.shared.b64",
    "st.shared.v2.b64": "st.shared.b128", "st.shared.v4.b32": "st.shared.b128", "st.shared.v2.b32": "st.shared.b64",
}  # fmt: skip
RULES.update({alias: RULES[name]._replace(instruction=alias) for alias, name in _ALIASES.items()})


def rule_for(instruction: str) -> Rule:
    """The row for `instruction`: AGGREGATED, or PTX's name (`ld.shared.b64`, `ldmatrix.x4.trans`, `cp.async.cg.16`).

    Raises `BankcheckError` for an instruction that has no row.
    """
    try:
        return RULES[instruction]
    except KeyError:
        raise BankcheckError(
            f"no hardware rule for instruction '{instruction}' (known: ld/st.shared.bN, ldmatrix.xN, stmatrix.xN, "
            f"atom/red.shared.OP.TYPE, {AGGREGATED}, cp.async.ca.N, cp.async.cg.16)"
        ) from None


MEASURED_ARCH = 90
ASSUMED_ARCHES = (70, 72, 75, 80, 86, 87, 89, 100, 101, 103, 110, 120, 121)


def arch_note(arch: str) -> str:
    """What the rules rest on for `arch` ("sm_90"): empty where measured, else the assumption to list.

    Raises `BankcheckError` before Volta, where the rules differ, and for a name that is no architecture.
    """
    digits = arch.lower().removeprefix("sm_").removeprefix("compute_").rstrip("af")
    if not digits.isdecimal() or len(digits) > 3:
        raise BankcheckError(f"'{arch[:40]}' is not an architecture: write sm_90")
    number = int(digits)
    if number == MEASURED_ARCH:
        return ""
    if number < 70:
        raise BankcheckError(f"sm_{number} is older than Volta, where shared memory follows other rules: not supported")
    if number not in ASSUMED_ARCHES:
        raise BankcheckError(f"sm_{number} is not a known architecture (sm_70 to sm_121)")
    return f"sm_{number} follows the rules measured on sm_90"
