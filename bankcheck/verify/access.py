"""`verify access` and `verify ldmatrix`: what `analyze` and `ldmatrix` predict, made on the GPU.

Every case of an analysis is made once, at the sample of its unknowns that the analysis counted: the data by tags, the
count by clock. For loads the tags are placed through the array's layout, so that a lane that gets the wrong element
shows a wrong layout and not only a wrong address.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from bankcheck import ctype as types
from bankcheck.access import Access, read_access
from bankcheck.analysis import Analysis, Case
from bankcheck.banks import Traffic
from bankcheck.errors import BankcheckError
from bankcheck.hardware import WARP_LANES
from bankcheck.matrix.model import MatrixReport
from bankcheck.options import Options
from bankcheck.verify.device import RequestDevice
from bankcheck.verify.identity import Identity, verify_layout
from bankcheck.verify.plan import Request
from bankcheck.warps import lane_offsets

MAX_LABEL = 40
"""Characters of an expression that a row shows."""
PERIOD_BYTES = 1024
"""Moving all addresses by a multiple of this changes neither banks nor rows nor swizzles."""


def access_requests(analysis: Analysis) -> list[Request]:
    """One request for each case that has a count; its label says for which values.

    Raises `BankcheckError` for an access to global memory, and where no case can be made.
    """
    access = analysis.access
    if access.space != "shared":
        raise BankcheckError("verify makes requests to shared memory: leave --space global out")
    found = []
    for case in analysis.cases:
        if isinstance(case.traffic, Traffic) and any(address is not None for address in case.traffic.addresses):
            found.append(Request(_label(access, case), access.rule.instruction, rebased(case.traffic.addresses)))
    if not found:
        raise BankcheckError(f"'{access.text[:60]}' has no case that a warp can make")
    return found


def _label(access: Access, case: Case) -> str:
    text = access.text if len(access.text) <= MAX_LABEL else access.text[: MAX_LABEL - 3] + "..."
    return f"{text}: {case.when}" if case.when else text


def rebased(addresses: Sequence[int | None]) -> tuple[int | None, ...]:
    """The addresses moved together, by a multiple of PERIOD_BYTES, to where shared memory starts."""
    active = [address for address in addresses if address is not None]
    start = min(active, default=0) // PERIOD_BYTES * PERIOD_BYTES
    return tuple(None if address is None else address - start for address in addresses)


def access_layouts(analysis: Analysis, options: Options, device: RequestDevice) -> list[Identity]:
    """The identity check of every case of a load or ldmatrix."""
    access = analysis.access
    if not access.rule.instruction.startswith("ld"):
        return []
    plain = read_access(access.text, options._replace(swizzle=None, swizzle_xor=False))
    return [
        _case_layout(access, plain, case, device)
        for case in analysis.cases
        if isinstance(case.traffic, Traffic) and any(address is not None for address in case.traffic.addresses)
    ]


def _case_layout(access: Access, plain: Access, case: Case, device: RequestDevice) -> Identity:
    """`plain` is the same access without its swizzle: its offsets say which elements are wanted."""
    label, instruction = _label(access, case), access.rule.instruction
    width = min(types.size_of(access.element), access.bytes_per_lane, 2 if access.rule.matrices else 16)
    wanted, stored = lane_offsets(plain, case.values)[0], lane_offsets(access, case.values)[0]
    starts = [None if offset is None else offset // width for offset in wanted]
    active = [start for start in starts if start is not None]
    size = types.size_of(access.array.ctype) or _whole_periods(access, (max(active) + 1) * width)
    count = max(size // width, max(active) + access.bytes_per_lane // width)
    if min(active) < 0 or count * width > device.facts.shared_bytes:
        place = f"{access.array.name} does not fit into the {device.facts.shared_bytes} bytes of shared memory"
        return Identity(label, instruction, count, (), "", not_run=f"{place}, or a lane is outside it")
    writer = _layout(access, count, width)
    reader = list(writer)
    for start, offset in zip(starts, stored, strict=True):
        if start is not None and offset is not None:
            reader[start] = offset
    return verify_layout(instruction, starts, width, writer, device, reader=reader, label=label)


def _whole_periods(access: Access, needed_bytes: int) -> int:
    """The size of an array of unknown length that its swizzle permutes: at least `needed_bytes`."""
    period = 1 << (access.swizzle.source_mask | access.swizzle.target_mask).bit_length() if access.swizzle else 1
    return -(-needed_bytes // period) * period


def _layout(access: Access, count: int, width: int) -> list[int]:
    """Where the array's layout stores each element, by number in memory order without the swizzle."""
    offsets = list(range(0, count * width, width))
    ctype = access.array.ctype
    if access.swizzle is not None:
        return [access.swizzle(offset) for offset in offsets]
    if not (access.array.xor_columns and isinstance(ctype, types.ArrayType) and len(types.shape_of(ctype)[0]) > 1):
        return offsets
    (*_, rows, columns), _ = types.shape_of(ctype)
    while isinstance(ctype.element, types.ArrayType) and isinstance(ctype.element.element, types.ArrayType):
        ctype = ctype.element
    pitch = ctype.step_bytes
    moved = []
    for offset in offsets:
        row, column = offset // pitch, offset % pitch // width
        moved.append(row * pitch + (column ^ row % rows) * width if column < columns else offset)
    return moved


def matrix_requests(report: MatrixReport) -> list[Request]:
    """One request for each position on the tile; positions that fall into the same bank groups are made once."""
    found: dict[tuple[int, ...], Request] = {}
    for segment in report.segments:
        lanes = [*segment.addresses, *(None,) * (WARP_LANES - len(segment.addresses))]
        label = f"rows {segment.row_block}.., segment {segment.q}"
        found.setdefault(segment.groups, Request(label, report.instruction, rebased(lanes)))
    return list(found.values())


def matrix_layouts(report: MatrixReport, device: RequestDevice) -> list[Identity]:
    """The identity check of the same positions, through the tile's layout; ldmatrix only."""
    return list(_matrix_layouts(report, device)) if report.instruction.startswith("ldmatrix") else []


def _matrix_layouts(report: MatrixReport, device: RequestDevice) -> Iterator[Identity]:
    tile = report.tile
    if tile.storage_bytes > device.facts.shared_bytes:
        return
    width = min(tile.element_bytes, 2)
    pieces = tile.element_bytes // width
    own = replace(tile, base_bytes=0)
    writer = [
        own.address_bytes(row, col) + piece * width
        for row in range(tile.rows) for col in range(tile.cols) for piece in range(pieces)
    ]  # fmt: skip
    made = set()
    for segment in report.segments:
        if segment.groups in made:
            continue
        made.add(segment.groups)
        reader = list(writer)
        starts: list[int | None] = [(row * tile.cols + col) * pieces for row, col in segment.places]
        for start, address in zip(starts, segment.addresses, strict=True):
            assert start is not None
            reader[start] = address - tile.base_bytes
        starts += [None] * (WARP_LANES - len(starts))
        label = f"rows {segment.row_block}.., segment {segment.q}"
        yield verify_layout(report.instruction, starts, width, writer, device, reader=reader, label=label)
