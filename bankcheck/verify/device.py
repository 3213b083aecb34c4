"""The GPU, through CuPy: what it is, compiling a kernel for it, running one. The only module that imports cupy.

Importing this module needs no GPU; `open_device` says in one line what is missing.
"""

from __future__ import annotations

import importlib
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from bankcheck.errors import BankcheckError
from bankcheck.hardware import WARP_LANES
from bankcheck.verify.kernels import REGISTER_BYTES, VALUE_BYTES, WARPS, kernel_source

INSTALL = "pip install 'bankcheck[gpu]'"
MIN_DRIVER = "580"
"""The oldest Linux driver branch for CUDA 13, the CUDA of cupy-cuda13x (CUDA 13.0 release notes)."""
NO_GPU = f"no NVIDIA GPU found: verify runs kernels on one (with an NVIDIA driver {MIN_DRIVER} or newer, and {INSTALL})"
INSUFFICIENT_DRIVER, NO_DEVICE = 35, 100
"""cudaErrorInsufficientDriver, cudaErrorNoDevice (CUDA Runtime API)."""
ROUNDS, WARM_UP = 5, 5
"""Timings come in turns; in each, calls of the same kernel before the first timing: clocks rise, the kernel is loaded
and the multiprocessors divide their memory as it needs."""
COPY = "device copy"
CUPY = "cupy.ascontiguousarray(x.T)"
TORCH = "torch x.t().contiguous()"


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """The GPU and the software that a measurement ran on."""

    gpu: str
    arch: str
    multiprocessors: int
    shared_bytes: int
    """Shared memory that one block may ask for."""
    driver: str
    cuda: str
    cupy: str


@dataclass(frozen=True, slots=True)
class Job:
    """One launch of a request kernel: a block for each address pattern."""

    file: str
    function: str
    addresses: Sequence[Sequence[int]]
    """[block][32] byte offsets, -1 for an inactive lane."""
    values: Sequence[bytes]
    """[block] VALUE_BYTES that every warp sends or copies."""
    writer: Sequence[int]
    """[element] byte offset at which the writer puts it."""
    tags: bytes
    """[element][element_bytes]"""
    element_bytes: int
    image_bytes: int
    """Shared memory to hand back from each block; 0 for none."""
    requests: int
    """Timed requests of each warp, a multiple of IN_FLIGHT; 0 for none."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one block of a job handed back."""

    registers: bytes
    """[lane][REGISTER_BYTES] what each lane received."""
    image: bytes
    """Shared memory after the request."""
    cycles: int
    """From the first warp's first timed request to the last warp's last."""


class RequestDevice(Protocol):
    """Something that runs request kernels: a GPU, or in tests a model of one."""

    @property
    def facts(self) -> DeviceFacts:
        """What it is."""

    def run(self, job: Job) -> list[Outcome]:
        """Run one job and hand back an outcome a block."""


@dataclass(frozen=True, slots=True)
class TransposeKernel:
    """A transpose under kernels/, and how it is launched."""

    name: str
    file: str
    tile: tuple[int, int]
    """Rows and columns of the input that a block handles."""
    block: tuple[int, int]
    flat_grid: bool = False
    """One row of blocks, which find their tile themselves; else blockIdx.x and .y name it."""
    cluster: int = 1
    """The blocks of a flat grid come in multiples of this."""

    @property
    def function(self) -> str:
        """The `__global__` function, named as its file."""
        return self.file.removesuffix(".cu")

    def grid(self, rows: int, columns: int) -> tuple[int, ...]:
        """Blocks for an input of `rows` x `columns`."""
        down, across = -(-rows // self.tile[0]), -(-columns // self.tile[1])
        return (-(-down * across // self.cluster) * self.cluster,) if self.flat_grid else (across, down)


class Device:
    """The current CUDA device. Made by `open_device`, which has run a kernel on it."""

    def __init__(self, cupy: Any, numpy: Any, facts: DeviceFacts) -> None:
        self._cupy = cupy
        self._numpy = numpy
        self._facts = facts
        self._modules: dict[str, Any] = {}

    @property
    def facts(self) -> DeviceFacts:
        """What this device is."""
        return self._facts

    def function(self, file: str, name: str) -> Any:
        """The `__global__` function `name` of kernels/`file`, compiled for this device."""
        try:
            if file not in self._modules:
                self._modules[file] = self._cupy.RawModule(code=kernel_source(file), options=("-std=c++17",))
            return self._modules[file].get_function(name)
        except self._cupy.cuda.compiler.CompileException as error:
            raise BankcheckError(f"kernels/{file} does not compile for {self._facts.arch}: {error}") from None

    def run(self, job: Job) -> list[Outcome]:
        """Run one job. The launch asks for all shared memory, so that a block has its multiprocessor to itself."""
        cp, np = self._cupy, self._numpy
        blocks = len(job.addresses)
        sent = b"".join(value.ljust(VALUE_BYTES, b"\0") * WARPS for value in job.values)
        registers = cp.zeros((blocks, WARP_LANES * REGISTER_BYTES), dtype=cp.uint8)
        image = cp.zeros((blocks, max(1, job.image_bytes)), dtype=cp.uint8)
        clocks = cp.zeros((blocks, WARPS, 2), dtype=cp.int64)
        arguments = (
            cp.asarray(np.array(job.addresses, dtype=np.int32)),
            cp.asarray(np.frombuffer(sent, dtype=np.uint8)),
            cp.asarray(np.array(job.writer, dtype=np.int32)),
            cp.asarray(np.frombuffer(job.tags, dtype=np.uint8)),
            registers, image, clocks,
            *(np.int32(n) for n in (len(job.writer), job.element_bytes, job.image_bytes, job.requests)),
            np.uint32(0),
        )  # fmt: skip
        function = self.function(job.file, job.function)
        function.max_dynamic_shared_size_bytes = self._facts.shared_bytes
        function((blocks,), (WARPS * WARP_LANES,), arguments, shared_mem=self._facts.shared_bytes)
        times, left, got = clocks.get(), image.get(), registers.get()
        cycles = times[:, :, 1].max(axis=1) - times[:, :, 0].min(axis=1)
        return [
            Outcome(got[block].tobytes(), left[block, : job.image_bytes].tobytes(), int(cycles[block]))
            for block in range(blocks)
        ]

    def transpose_errors(self, kernel: TransposeKernel, rows: int, columns: int) -> int:
        """Elements of the (columns, rows) result that are wrong; every input element is a number of its own."""
        cp = self._cupy
        x = cp.arange(rows * columns, dtype=cp.int32).reshape(rows, columns)
        y = cp.full((columns, rows), -1, dtype=cp.int32)
        self._transpose(kernel, x, y)
        return int((y != x.T).sum())

    def time_transposes(
        self, kernels: Sequence[TransposeKernel], rows: int, columns: int, repeats: int
    ) -> dict[str, list[float]]:
        """Milliseconds, `repeats` for each: the copy, every kernel, CuPy's transpose, and torch's where it is there."""
        cp = self._cupy
        x = cp.random.random((rows, columns), dtype=cp.float32)
        y = cp.empty((columns, rows), dtype=cp.float32)
        stream = cp.cuda.Stream.null
        calls: dict[str, Callable[[], object]] = {COPY: lambda: y.data.copy_from_device_async(x.data, x.nbytes, stream)}
        for kernel in kernels:
            calls[kernel.name] = partial(self._transpose, kernel, x, y)
        calls[CUPY] = lambda: cp.ascontiguousarray(x.T)
        torch = _torch()
        if torch is not None:
            shared = torch.from_dlpack(x)
            calls[TORCH] = lambda: shared.t().contiguous()
        return self._time(calls, repeats)

    def _transpose(self, kernel: TransposeKernel, x: Any, y: Any) -> None:
        rows, columns = x.shape
        size = (self._numpy.int32(rows), self._numpy.int32(columns))
        self.function(kernel.file, kernel.function)(kernel.grid(rows, columns), kernel.block, (x, y, *size))

    def _time(self, calls: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, list[float]]:
        """Milliseconds of every call, in ROUNDS turns: what drifts, such as clocks, then falls on all of them alike."""
        cuda = self._cupy.cuda
        events: dict[str, list[tuple[Any, Any]]] = {name: [] for name in calls}
        for turn in range(ROUNDS):
            for name, call in calls.items():
                for _ in range(WARM_UP):
                    call()
                for _ in range(turn * repeats // ROUNDS, (turn + 1) * repeats // ROUNDS):
                    begin, end = cuda.Event(), cuda.Event()
                    begin.record()
                    call()
                    end.record()
                    events[name].append((begin, end))
        cuda.Device().synchronize()
        return {name: [float(cuda.get_elapsed_time(*pair)) for pair in pairs] for name, pairs in events.items()}


def open_device() -> Device:
    """The current CUDA device, after a kernel has run on it.

    Raises `BankcheckError`, in one line, where CuPy, a GPU or a recent enough driver is missing.
    """
    try:
        cupy = importlib.import_module("cupy")
        numpy = importlib.import_module("numpy")
    except ImportError as error:
        if error.name in ("cupy", "numpy"):
            raise BankcheckError(f"verify runs kernels on an NVIDIA GPU through CuPy: {INSTALL}") from None
        raise BankcheckError(f"CuPy does not load ({_first_line(error)}): {INSTALL}") from None
    try:
        count = cupy.cuda.runtime.getDeviceCount()
        if not count:
            raise BankcheckError(NO_GPU)
        device = Device(cupy, numpy, _facts(cupy))
        _probe(cupy)
    except BankcheckError:
        raise
    except Exception as error:
        raise BankcheckError(_explain(error, _driver_version(cupy))) from None
    return device


def _probe(cupy: Any) -> None:
    """Run a kernel: only this shows that compiler, driver and GPU work together."""
    source = 'extern "C" __global__ void probe(int *out) { *out = 42; }'
    out = cupy.zeros(1, dtype=cupy.int32)
    cupy.RawKernel(source, "probe")((1,), (1,), (out,))
    if int(out[0]) != 42:
        raise BankcheckError("the GPU ran a test kernel but its result is wrong")


def _facts(cupy: Any) -> DeviceFacts:
    properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.runtime.getDevice())
    return DeviceFacts(
        gpu=properties["name"].decode(),
        arch=f"sm_{properties['major']}{properties['minor']}",
        multiprocessors=int(properties["multiProcessorCount"]),
        shared_bytes=int(properties["sharedMemPerBlockOptin"]),
        driver=_driver() or f"for CUDA {_version(cupy.cuda.runtime.driverGetVersion())}",
        cuda=_version(cupy.cuda.runtime.runtimeGetVersion()),
        cupy=str(cupy.__version__),
    )


def _driver_version(cupy: Any) -> int:
    """The newest CUDA that the driver serves, as 1000 x major + 10 x minor; 0 where there is no driver."""
    try:
        return int(cupy.cuda.runtime.driverGetVersion())
    except cupy.cuda.runtime.CUDARuntimeError:
        return 0


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def _driver() -> str:
    """The driver's version as nvidia-smi prints it, or nothing where that program does not answer."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.split("\n", 1)[0].strip()


def _explain(error: Exception, driver_version: int) -> str:
    """What to do about an error that CUDA gave before the first kernel had run."""
    status = getattr(error, "status", 0)
    if status == INSUFFICIENT_DRIVER and driver_version:
        return f"the NVIDIA driver is too old for CUDA 13: install driver {MIN_DRIVER} or newer"
    if status in (INSUFFICIENT_DRIVER, NO_DEVICE):  # without any driver, CUDA finds it insufficient
        return NO_GPU
    return f"the GPU does not run a test kernel ({_first_line(error)}): {INSTALL}, NVIDIA driver {MIN_DRIVER} or newer"


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip(" =")]
    return lines[0][:200] if lines else type(error).__name__


def _torch() -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError:
        return None
