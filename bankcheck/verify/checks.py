"""The verifier: requests in, rows out. A row holds what was predicted, what the GPU did, and a verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from bankcheck.banks import Addresses, Traffic, count_wavefronts
from bankcheck.errors import BankcheckError
from bankcheck.hardware import WARP_LANES, Rule, rule_for
from bankcheck.verify.clock import Cycles, cycles_per_request, expected_cycles
from bankcheck.verify.data import check, expected, values_for
from bankcheck.verify.device import Job, RequestDevice
from bankcheck.verify.kernels import Kernel, kernel_for, no_kernel
from bankcheck.verify.plan import RANDOM, Request, table
from bankcheck.verify.tags import tags

COUNTER_TOLERANCE = 0.25
"""Wavefronts a request: cp.async adds 0.2 to the counter for its source, launches add up to 0.03."""
Verdict = Literal["match", "mismatch", "not run"]
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Row:
    """One verified request. Counts are in wavefronts, times in cycles per request."""

    label: str
    instruction: str
    addresses: tuple[int | None, ...]
    wavefronts: int | None
    """Predicted; None where no number is predicted."""
    cycles: Cycles | None
    """The measured cycles that confirm the prediction."""
    measured_cycles: float | None = None
    data: str = ""
    """What is wrong with the data the lanes received or stored; empty if it is right."""
    counter: float | None = None
    """Wavefronts by the hardware counter, where the profiler was asked."""
    predicted_counter: int | None = None
    """What that counter should read."""
    not_run: str = ""
    """Why the request did not run; empty if it did."""

    @property
    def is_random(self) -> bool:
        """True for a random pattern of `verify all`."""
        return self.label.startswith(RANDOM) and self.label.removeprefix(RANDOM).isdecimal()

    @property
    def verdict(self) -> Verdict:
        """`match` if data, cycles and counter (where read) are as predicted."""
        if self.not_run or self.cycles is None or self.measured_cycles is None:
            return "not run"
        counted = (
            self.counter is None
            or self.predicted_counter is None
            or abs(self.counter - self.predicted_counter) <= COUNTER_TOLERANCE
        )
        return "match" if not self.data and counted and self.cycles.confirms(self.measured_cycles) else "mismatch"


def verify_requests(
    requests: Iterable[Request], device: RequestDevice, progress: Progress = lambda _: None
) -> list[Row]:
    """Run every request on `device` and compare with the prediction; rows come in the order of the requests.

    Raises `BankcheckError` for an unknown instruction, a misaligned lane or an address beyond shared memory.
    """
    requests = list(requests)
    rows: dict[int, Row] = {}
    for kernel, numbers in _by_kernel(requests, rows, device).items():
        for start in range(0, len(numbers), kernel.concurrent):
            batch = numbers[start : start + kernel.concurrent]
            progress(f"{kernel.ptx}: {start + len(batch)} of {len(numbers)}")
            made = _run_batch(kernel, [requests[number] for number in batch], device)
            rows.update(zip(batch, made, strict=True))
    return [rows[number] for number in range(len(requests))]


def verify_addresses(instruction: str, addresses: Addresses, device: RequestDevice, label: str = "request") -> Row:
    """Verify one request: byte addresses per lane (None: inactive) of an instruction written as in PTX."""
    return verify_requests([Request(label, instruction, tuple(addresses))], device)[0]


def verify_all(device: RequestDevice, random: int = 0, seed: int = 0, progress: Progress = lambda _: None) -> list[Row]:
    """Verify the whole table and `random` random patterns of every instruction."""
    return verify_requests(table(random, seed), device, progress)


def _by_kernel(requests: Sequence[Request], rows: dict[int, Row], device: RequestDevice) -> dict[Kernel, list[int]]:
    """The requests each kernel makes, by number; those that cannot run go to `rows`."""
    found: dict[Kernel, list[int]] = {}
    for number, request in enumerate(requests):
        traffic = count_wavefronts(request.instruction, request.addresses)
        reason = _cannot_run(request, traffic.rule, device)
        if reason:
            rows[number] = _row(request, traffic, not_run=reason)
        else:
            found.setdefault(kernel_for(request.instruction), []).append(number)
    return found


def _cannot_run(request: Request, rule: Rule, device: RequestDevice) -> str:
    if no_kernel(rule):
        return no_kernel(rule)
    active = [address for address in request.addresses if address is not None]
    if not active:
        return "no lane is active"
    arch, kernel = int(device.facts.arch.removeprefix("sm_")), kernel_for(request.instruction)
    if arch < kernel.min_arch:
        return f"{kernel.ptx} needs sm_{kernel.min_arch} or newer, this is {device.facts.arch}"
    if rule.matrices and len([a for a in request.addresses[: 8 * rule.matrices] if a is not None]) < 8 * rule.matrices:
        return f"{rule.instruction} needs the addresses of lanes 0 to {8 * rule.matrices - 1}"
    end = max(active) + rule.bytes_per_lane
    if end > device.facts.shared_bytes:
        raise BankcheckError(f"byte {end - 1} lies beyond the {device.facts.shared_bytes} bytes of shared memory here")
    return ""


def _run_batch(kernel: Kernel, requests: Sequence[Request], device: RequestDevice) -> Iterator[Row]:
    """Requests of one kernel, together in each launch: first for their data, then for their cycles."""
    rule = rule_for(requests[0].instruction)
    end = max(address for request in requests for address in request.addresses if address is not None)
    image_bytes = -(-(end + rule.bytes_per_lane) // 128) * 128
    memory = tags(image_bytes // 4, 4)
    lanes = [request.addresses + (None,) * (WARP_LANES - len(request.addresses)) for request in requests]
    values = [values_for(rule, addresses, memory) for addresses in lanes]
    launched = [launch_addresses(rule, addresses) for addresses in lanes]
    writer = range(0, image_bytes, 4)

    def job(image: int, timed: int) -> Job:
        return Job(kernel.file, kernel.function, launched, values, writer, memory, 4, image, timed)

    outcomes = device.run(job(image_bytes, 0))
    cycles = cycles_per_request(lambda timed: [outcome.cycles for outcome in device.run(job(0, timed))])
    for i, request in enumerate(requests):
        wanted = expected(rule, lanes[i], values[i], memory)
        wrong = check(rule, wanted, memory, outcomes[i].registers, outcomes[i].image)
        traffic = count_wavefronts(request.instruction, request.addresses)
        yield _row(request, traffic, measured_cycles=cycles[i], data=wrong)


def launch_addresses(rule: Rule, addresses: Sequence[int | None]) -> list[int]:
    """Addresses as a kernel takes them: -1 for an inactive lane; matrix instructions run with all 32 lanes."""
    if rule.matrices:
        given = [address for address in addresses[: 8 * rule.matrices] if address is not None]
        return [given[lane % len(given)] for lane in range(WARP_LANES)]
    return [-1 if address is None else address for address in addresses]


def _row(
    request: Request, traffic: Traffic, measured_cycles: float | None = None, data: str = "", not_run: str = ""
) -> Row:
    cycles = None if traffic.wavefronts is None else expected_cycles(traffic.rule, traffic)
    return Row(
        request.label, request.instruction, request.addresses, traffic.wavefronts, cycles, measured_cycles, data,
        not_run=not_run,
    )  # fmt: skip
