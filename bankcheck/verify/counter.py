"""The hardware's own count: the same requests under Nsight Compute, which reads one counter of the LSU pipe.

`count_with_ncu` starts `ncu` on this module; `main` then launches every request twice, with fewer and with more
repetitions. The difference of the two counts is what the requests cost, without the kernel's own accesses.
"""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from bankcheck.banks import count_wavefronts
from bankcheck.errors import BankcheckError
from bankcheck.hardware import WARP_LANES, rule_for
from bankcheck.verify.checks import Row, launch_addresses
from bankcheck.verify.device import Job, RequestDevice, open_device
from bankcheck.verify.kernels import IN_FLIGHT, WARPS, kernel_for
from bankcheck.verify.plan import Request

METRIC = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"
SHORT_REQUESTS, LONG_REQUESTS = IN_FLIGHT, 3 * IN_FLIGHT


RANDOM_COUNTED = 5
"""Random patterns of each instruction whose counter is read: the profiler takes long over each launch."""


def with_counter(rows: Sequence[Row], progress: Callable[[str], None] = lambda _: None) -> list[Row]:
    """The rows with the hardware counter read, for all named patterns and the first random ones."""
    chosen = {
        i: Request(row.label, row.instruction, row.addresses)
        for i, row in enumerate(rows)
        if not row.not_run and (not row.is_random or int(row.label.split()[1]) < RANDOM_COUNTED)
    }
    progress(f"ncu: {len(chosen)} requests")
    counts = dict(zip(chosen, count_with_ncu(list(chosen.values())), strict=True))
    return [
        replace(row, counter=round(counts[i], 3), predicted_counter=predicted_counter(chosen[i]))
        if i in counts
        else row
        for i, row in enumerate(rows)
    ]


def predicted_counter(request: Request) -> int | None:
    """What the counter should read for one request: its wavefronts, and 0 for cp.async.cg, which passes it by."""
    traffic = count_wavefronts(request.instruction, request.addresses)
    return 0 if traffic.rule.row_writes else traffic.wavefronts


def count_with_ncu(requests: Sequence[Request]) -> list[float]:
    """Wavefronts of each request by the hardware counter.

    Raises `BankcheckError` where Nsight Compute is not installed or may not read the counters.
    """
    program = shutil.which("ncu")
    if program is None:
        raise BankcheckError("--ncu needs Nsight Compute's `ncu` on the PATH (it comes with the CUDA toolkit)")
    functions = sorted({kernel_for(request.instruction).function for request in requests})
    package_parent = str(Path(__file__).resolve().parents[2])
    paths = [package_parent, *filter(None, [os.environ.get("PYTHONPATH")])]
    with tempfile.TemporaryDirectory() as folder:
        plan = Path(folder) / "requests.json"
        plan.write_text(json.dumps([[r.label, r.instruction, r.addresses] for r in requests]), encoding="utf-8")
        command = [
            program, "--metrics", METRIC, "--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base",
            "--kernel-name-base", "function", "--kernel-name", f"regex:^({'|'.join(functions)})$",
            sys.executable, "-m", "bankcheck.verify.counter", str(plan),
        ]  # fmt: skip
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
    return parse(done.stdout, done.stderr, len(requests))


def parse(output: str, errors: str, requests: int) -> list[float]:
    """The counts from ncu's CSV: two launches for each request, fewer and more repetitions."""
    start = output.find('"ID"')
    lines = [line for line in csv.DictReader(io.StringIO(output[start:]))] if start >= 0 else []
    counts = [float(line[METRIC].replace(",", "")) for line in lines if line.get("ID") and line.get(METRIC)]
    if len(counts) != 2 * requests:
        words = [line.strip() for line in (output + "\n" + errors).splitlines() if "==ERROR==" in line]
        reason = words[0] if words else f"it counted {len(counts)} of {2 * requests} launches"
        raise BankcheckError(f"ncu did not read the counter: {reason}")
    made = WARPS * (LONG_REQUESTS - SHORT_REQUESTS)
    return [(long - short) / made for short, long in zip(counts[::2], counts[1::2], strict=True)]


def launch_all(requests: Sequence[Request], device: RequestDevice) -> None:
    """Launch every request with fewer and with more repetitions, one block each."""
    for request in requests:
        rule, kernel = rule_for(request.instruction), kernel_for(request.instruction)
        lanes = [*request.addresses, *(None,) * (WARP_LANES - len(request.addresses))]
        addresses = [launch_addresses(rule, lanes)]
        for timed in (SHORT_REQUESTS, LONG_REQUESTS):
            device.run(Job(kernel.file, kernel.function, addresses, [b""], [0], bytes(4), 4, 0, timed))


def main(arguments: Sequence[str]) -> None:
    """Entry point for ncu: the file of requests."""
    plan = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    requests = [Request(label, instruction, tuple(addresses)) for label, instruction, addresses in plan]
    launch_all(requests, open_device())


if __name__ == "__main__":
    main(sys.argv[1:])
