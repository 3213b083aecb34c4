"""The identity check: do the lanes get the elements that a layout promises them?

Shared memory is filled through the *writer's* map, element by element, with tags that name the logical element. The
lanes then access it at the addresses of the *reader's* map. A writer that swizzles and a reader that does not (or the
other way round) hands the lanes other elements, and the first of them is named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bankcheck.errors import BankcheckError
from bankcheck.hardware import WARP_LANES, Rule, rule_for
from bankcheck.verify.checks import launch_addresses
from bankcheck.verify.device import Job, RequestDevice
from bankcheck.verify.kernels import REGISTER_BYTES, kernel_for
from bankcheck.verify.tags import is_trans, matrix_fragment, named, tag, tags

DIFFERENT_MAPS = "writer and reader use different maps"


@dataclass(frozen=True, slots=True)
class Identity:
    """The outcome of one identity check."""

    label: str
    instruction: str
    elements: int
    wrong_lanes: tuple[int, ...]
    problem: str
    """Empty if every lane has the elements that the layout promises."""
    on_purpose: bool = False
    """The reader was given another map than the writer's on purpose, so a problem is the right answer."""
    not_run: str = ""
    """Why the check was not made; empty if it was."""

    @property
    def verdict(self) -> Literal["match", "mismatch", "not run"]:
        """`match` if lanes have their elements, or, where the maps differ on purpose, if that was caught and named."""
        if self.not_run:
            return "not run"
        as_promised = DIFFERENT_MAPS in self.problem if self.on_purpose else not self.problem
        return "match" if as_promised else "mismatch"


def verify_layout(
    instruction: str,
    starts: Sequence[int | None],
    element_bytes: int,
    writer: Sequence[int],
    device: RequestDevice,
    reader: Sequence[int] | None = None,
    label: str = "layout",
    on_purpose: bool = False,
) -> Identity:
    """Check that a load or ldmatrix hands each lane its elements.

    `writer[e]` and `reader[e]` are the byte offsets at which writer and reader place logical element e (the same map if
    `reader` is left out). `starts[lane]` is the element at which the lane's access begins, None for an inactive lane:
    for a load the first of the consecutive elements it wants, for ldmatrix the first of the row it points to.

    Raises `BankcheckError` where the layout is no layout: elements that overlap, are misaligned or lie outside shared
    memory, a width that is no whole number of elements, or an instruction that is no load.
    """
    rule = rule_for(instruction)
    reader = writer if reader is None else reader
    _check_arguments(rule, starts, element_bytes, writer, reader)
    if max(*writer, *reader) + max(element_bytes, rule.bytes_per_lane) > device.facts.shared_bytes:
        raise BankcheckError(
            f"the layout does not fit into the {device.facts.shared_bytes} bytes of shared memory here"
        )
    kernel = kernel_for(instruction)
    lanes = [*starts, *(None,) * (WARP_LANES - len(starts))]
    addresses = [None if start is None else reader[start] for start in lanes]
    job = Job(
        kernel.file, kernel.function, [launch_addresses(rule, addresses)], [b""], writer,
        tags(len(writer), element_bytes), element_bytes, 0, 0,
    )  # fmt: skip
    registers = device.run(job)[0].registers
    promised = _promised(rule, lanes, element_bytes)
    received = {
        lane: registers[lane * REGISTER_BYTES : lane * REGISTER_BYTES + len(data)] for lane, data in promised.items()
    }
    wrong = tuple(lane for lane, data in promised.items() if received[lane] != data)
    problem = ""
    if wrong:
        lane = wrong[0]
        problem = _name_problem(lane, promised[lane], received[lane], element_bytes, writer, reader)
    return Identity(label, instruction, len(writer), wrong, problem, on_purpose)


def _promised(rule: Rule, starts: Sequence[int | None], element_bytes: int) -> dict[int, bytes]:
    """What the layout promises each lane, as tags."""
    count = rule.bytes_per_lane // element_bytes

    def run(start: int) -> bytes:
        return b"".join(tag(start + i, element_bytes) for i in range(count))

    if rule.matrices:
        rows = [run(start) for start in starts[: 8 * rule.matrices] if start is not None]
        return dict(enumerate(matrix_fragment(rows, is_trans(rule))))
    return {lane: run(start) for lane, start in enumerate(starts) if start is not None}


def _name_problem(
    lane: int, promised: bytes, received: bytes, element_bytes: int, writer: Sequence[int], reader: Sequence[int]
) -> str:
    """Which element is not the promised one, and how the two maps differ there."""
    at = next(
        i
        for i in range(0, len(promised), element_bytes)
        if promised[i:][:element_bytes] != received[i:][:element_bytes]
    )
    wanted = named(promised[at : at + element_bytes], element_bytes, len(writer))
    got = named(received[at : at + element_bytes], element_bytes, len(writer))
    assert wanted is not None
    found = "bytes that the writer never wrote" if got is None else f"element {got}"
    text = f"lane {lane} wants element {wanted} and gets {found}"
    if writer[wanted] != reader[wanted]:
        put, looked = writer[wanted], reader[wanted]
        return (
            f"{text}: the writer puts element {wanted} at byte {put}, the reader looks at byte {looked}: "
            f"{DIFFERENT_MAPS} (here apart by xor {put ^ looked})"
        )
    return f"{text}: its elements do not lie one after the other in this layout"


def _check_arguments(
    rule: Rule, starts: Sequence[int | None], element_bytes: int, writer: Sequence[int], reader: Sequence[int]
) -> None:
    if not rule.instruction.startswith("ld"):
        raise BankcheckError(f"an identity check needs a load or ldmatrix, not {rule.instruction}")
    if element_bytes not in (1, 2, 4, 8, 16) or rule.bytes_per_lane % element_bytes:
        raise BankcheckError(f"{rule.instruction} does not read whole elements of {element_bytes} bytes")
    if rule.matrices and element_bytes > 2:
        raise BankcheckError("ldmatrix hands out 2-byte pieces: check it with elements of 1 or 2 bytes")
    if len(reader) != len(writer) or len(set(writer)) != len(writer):
        raise BankcheckError("the writer's map is not one-to-one, or the reader's map has another length")
    count = rule.bytes_per_lane // element_bytes
    given = [start for start in starts[: 8 * rule.matrices or WARP_LANES] if start is not None]
    if rule.matrices and len(given) < 8 * rule.matrices:
        raise BankcheckError(f"{rule.instruction} needs the rows of lanes 0 to {8 * rule.matrices - 1}")
    for start in given:
        if not 0 <= start <= len(writer) - count:
            raise BankcheckError(f"elements {start} to {start + count - 1} lie outside the {len(writer)} of the layout")
        if reader[start] % rule.bytes_per_lane:
            raise BankcheckError(f"element {start} is at byte {reader[start]}, not a multiple of {rule.bytes_per_lane}")
