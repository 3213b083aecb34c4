"""Which transpose is fastest on this GPU: checks and times the candidates of tune_transpose.cu, in three rounds.

    python tests/tune_transpose.py [--size 8192] [--seconds 240] [--csv FILE]

Round 1 varies the tile, the block and the order of the tiles; round 2 limits how many blocks run at once, makes the
best persistent and gives them every cache hint; then the winners are timed again, in turn with the device copy.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import statistics
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import cupy
import numpy

SOURCE = Path(__file__).with_suffix(".cu").read_text()
FAMILIES = ("words", "registers", "cp.async", "copy engine")
SHARED_BYTES = 227 * 1024
FULL = -1
DOWN = 1 << 20
"""The band that holds all rows of tiles: tiles run down the input first."""
CHECKED_SIZES = ((1, 1), (31, 33), (33, 31), (60, 132), (1024, 2048), (2048, 1024))


@dataclass(frozen=True)
class Candidate:
    rows: int
    columns: int
    threads: int
    band: int = 1
    load: int = 0
    store: int = 0
    stages: int = 0
    blocks_per_sm: int = 0
    """0: one block a tile; else a persistent grid."""
    outs: int = 0
    """Tiles on their way out through the copy engine; 0: it is not used."""
    resident: int = 0
    """Blocks on a multiprocessor: at most this many, by asking for shared memory; FULL: as many as its threads allow,
    by compiling for few registers; 0: as it comes."""
    words: bool = False
    """A thread takes single float4, not 4x4 blocks."""
    chunk: int = 1
    """Tiles a block handles, one after the other, fetching the next while it stores one."""

    @property
    def shared_bytes(self) -> int:
        barriers = 128 if self.outs else 0
        needed = self.rows * self.columns * 4 * max(1, self.stages + self.outs) + barriers
        return max(needed, SHARED_BYTES // self.resident - 1024) if self.resident > 0 else needed

    @property
    def family(self) -> str:
        return "words" if self.words else "copy engine" if self.outs else "cp.async" if self.stages else "registers"

    def hints(self) -> list[tuple[int, int]]:
        """The pairs (LOAD, STORE) that its source knows."""
        known = {
            "copy engine": ((0, 4), (0, 4)),
            "cp.async": ((0,), range(6)),
            "registers": (range(5), range(6)),
            "words": (range(5), range(6)),
        }
        loads, stores = known[self.family]
        return list(itertools.product(loads, stores))


def tensor_map(x: cupy.ndarray, box_rows: int) -> cupy.ndarray:
    """The copy engine's description of a matrix, read in boxes of box_rows x 32 floats with the 128-byte swizzle."""
    driver = ctypes.CDLL("libcuda.so.1")
    room = ctypes.create_string_buffer(192)
    place = -(-ctypes.addressof(room) // 64) * 64
    rows, columns = x.shape
    sizes, strides = (ctypes.c_uint64 * 2)(columns, rows), (ctypes.c_uint64 * 1)(columns * 4)
    box, steps = (ctypes.c_uint32 * 2)(32, box_rows), (ctypes.c_uint32 * 2)(1, 1)
    kind, swizzle_128, promote_256 = 2, 3, 3
    status = driver.cuTensorMapEncodeTiled(
        ctypes.c_void_p(place), kind, 2, ctypes.c_void_p(x.data.ptr), sizes, strides, box, steps,
        0, swizzle_128, promote_256, 0,
    )  # fmt: skip
    if status:
        raise RuntimeError(f"cuTensorMapEncodeTiled: error {status}")
    return cupy.asarray(numpy.frombuffer(ctypes.string_at(place, 128), dtype=numpy.uint8))


def compiled(key: Candidate) -> cupy.RawKernel:
    macros = {
        "ROWS": key.rows, "COLUMNS": key.columns, "THREADS": key.threads, "BAND": key.band,
        "LOAD": key.load, "STORE": key.store, "STAGES": key.stages, "OUTS": key.outs, "TMA": int(key.outs > 0),
        "WORDS": int(key.words), "CHUNK": 0 if key.blocks_per_sm else key.chunk,
        "MIN_BLOCKS": 2048 // key.threads if key.resident == FULL else 0,
    }  # fmt: skip
    options = ("-std=c++17", *(f"-D{name}={value}" for name, value in macros.items()))
    kernel = cupy.RawKernel(SOURCE, "transpose", options=options)
    kernel.compile()
    kernel.max_dynamic_shared_size_bytes = SHARED_BYTES
    return kernel


class Bench:
    def __init__(self, size: int) -> None:
        self.size = size
        self.x = cupy.random.random((size, size), dtype=cupy.float32)
        self.y = cupy.empty_like(self.x)
        self.expected = cupy.ascontiguousarray(self.x.T)
        self.multiprocessors = cupy.cuda.Device().attributes["MultiProcessorCount"]
        self.kernels: dict[Candidate, Future[cupy.RawKernel]] = {}
        self.compilers = ThreadPoolExecutor(12)
        self.maps: dict[tuple[object, ...], tuple[object, ...]] = {}

    def compile(self, candidate: Candidate) -> Future[cupy.RawKernel]:
        """The kernel, being compiled in another thread."""
        key = replace(candidate, blocks_per_sm=min(1, candidate.blocks_per_sm))
        if key not in self.kernels:
            self.kernels[key] = self.compilers.submit(compiled, key)
        return self.kernels[key]

    def drop(self, candidates: list[Candidate]) -> None:
        """Do not compile those that are still waiting for it."""
        for candidate in candidates:
            key = replace(candidate, blocks_per_sm=min(1, candidate.blocks_per_sm))
            if self.compile(candidate).cancel():
                del self.kernels[key]

    def launch(self, candidate: Candidate, x: cupy.ndarray, y: cupy.ndarray) -> None:
        rows, columns = x.shape
        tiles = -(-rows // candidate.rows) * -(-columns // candidate.columns)
        grid = -(-tiles // candidate.chunk)
        if candidate.blocks_per_sm:
            grid = min(tiles, candidate.blocks_per_sm * self.multiprocessors)
        arguments: tuple[object, ...] = (x, y, cupy.int32(rows), cupy.int32(columns))
        if candidate.outs:
            arguments += self.tensor_maps(candidate, x, y)
        self.compile(candidate).result()((grid,), (candidate.threads,), arguments, shared_mem=candidate.shared_bytes)

    def tensor_maps(self, candidate: Candidate, x: cupy.ndarray, y: cupy.ndarray) -> tuple[object, ...]:
        key = (candidate.rows, candidate.columns, x.data.ptr, y.data.ptr, x.shape)
        if key not in self.maps:
            if x.shape[0] % 4 or x.shape[1] % 4:
                self.maps[key] = (x, y)  # not used: such sizes go one float at a time
            else:
                self.maps[key] = (tensor_map(x, candidate.rows), tensor_map(y, candidate.columns))
        return self.maps[key]

    def right(self, candidate: Candidate) -> bool:
        for rows, columns in CHECKED_SIZES:
            x = cupy.random.random((rows, columns), dtype=cupy.float32)
            y = cupy.full((columns, rows), cupy.nan, dtype=cupy.float32)
            self.launch(candidate, x, y)
            if not bool((y == x.T).all()):
                return False
        self.y.fill(cupy.nan)
        self.launch(candidate, self.x, self.y)
        return bool((self.y == self.expected).all())

    def gbytes_per_s(self, call, repeats: int) -> float:
        for _ in range(3):
            call()
        events = [(cupy.cuda.Event(), cupy.cuda.Event()) for _ in range(repeats)]
        for begin, end in events:
            begin.record()
            call()
            end.record()
        cupy.cuda.Device().synchronize()
        milliseconds = statistics.median(cupy.cuda.get_elapsed_time(begin, end) for begin, end in events)
        return 2 * self.x.nbytes / milliseconds / 1e6

    def copy(self) -> None:
        self.y.data.copy_from_device_async(self.x.data, self.x.nbytes, cupy.cuda.Stream.null)

    def time(self, candidate: Candidate, repeats: int) -> float:
        return self.gbytes_per_s(lambda: self.launch(candidate, self.x, self.y), repeats)


def shapes() -> list[Candidate]:
    tiles = [
        (32, 32, 64), (32, 64, 128), (64, 32, 128), (64, 64, 128), (64, 64, 256), (32, 128, 256), (128, 32, 256),
        (64, 128, 256), (64, 128, 512), (128, 64, 256), (128, 64, 512), (128, 128, 512), (128, 128, 1024),
        (256, 64, 512), (64, 256, 512), (32, 256, 256), (256, 32, 256), (64, 64, 64), (64, 32, 64), (32, 64, 64),
        (128, 32, 128), (32, 128, 128), (128, 64, 128), (64, 128, 128), (256, 32, 512), (32, 32, 32),
    ]  # fmt: skip
    found = [Candidate(*tile, band=band) for tile in tiles for band in (1, 8, 32, -1, DOWN)]
    for rows, columns in (
        (32, 32),
        (32, 64),
        (64, 32),
        (64, 64),
        (32, 128),
        (128, 32),
        (64, 128),
        (128, 64),
        (256, 32),
    ):
        for per_thread in (1, 2, 4):
            threads = rows * columns // 4 // per_thread
            if 64 <= threads <= 1024:
                found += [
                    Candidate(rows, columns, threads, band, resident=resident, words=True)
                    for band in (1, 8, 32, DOWN) for resident in (0, FULL)
                ]  # fmt: skip
    deep = [(64, 64, 256, 2, 5), (64, 64, 256, 3, 4), (64, 64, 128, 3, 4), (64, 128, 256, 2, 3), (128, 64, 256, 2, 3),
            (128, 128, 512, 2, 1), (32, 64, 128, 4, 6), (64, 32, 128, 4, 6), (32, 32, 64, 4, 12)]  # fmt: skip
    for rows, columns, threads, stages, blocks in deep:
        for band in (1, 8, 32):
            found.append(Candidate(rows, columns, threads, band, stages=stages, blocks_per_sm=blocks))
    engine = [(64, 64, 256, 4, 2, 2), (64, 64, 256, 3, 1, 3), (64, 64, 128, 3, 2, 2), (64, 64, 256, 2, 1, 4),
              (32, 64, 128, 4, 2, 4), (64, 32, 128, 4, 2, 4), (128, 64, 256, 2, 1, 2), (64, 128, 256, 2, 1, 2),
              (128, 64, 512, 4, 2, 1), (64, 128, 512, 4, 2, 1), (128, 128, 512, 2, 1, 1), (32, 32, 64, 4, 2, 9),
              (32, 128, 256, 3, 1, 3), (128, 32, 256, 3, 1, 3)]  # fmt: skip
    for rows, columns, threads, stages, outs, blocks in engine:
        for band in (1, 8, 32, DOWN):
            found.append(Candidate(rows, columns, threads, band, stages=stages, outs=outs, blocks_per_sm=blocks))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--size", type=int, default=8192)
    parser.add_argument("--seconds", type=float, default=240, help="stop starting candidates after this long")
    parser.add_argument("--family", choices=["", *FAMILIES], default="", help="only these candidates")
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args()
    bench = Bench(options.size)
    deadline = time.monotonic() + options.seconds
    copy = bench.gbytes_per_s(bench.copy, 30)
    print(f"copy {copy:.0f} GB/s", flush=True)
    results: dict[Candidate, float] = {}

    def measure(candidates: list[Candidate], repeats: int, share: float) -> None:
        stop = deadline - options.seconds * (1 - share)
        for candidate in candidates:
            bench.compile(candidate)
        for candidate in candidates:
            if time.monotonic() > stop:
                left = candidates[candidates.index(candidate) :]
                print(f"out of time: {len(left)} candidates left", file=sys.stderr)
                bench.drop(left)
                return
            if candidate in results:
                continue
            try:
                if not bench.right(candidate):
                    print(f"WRONG {candidate}", flush=True)
                    continue
                results[candidate] = bench.time(candidate, repeats)
            except Exception as error:  # one candidate that does not compile or launch must not end the run
                print(f"failed {candidate}: {str(error)[:200]}", flush=True)

    def best(count: int, family: str = "") -> list[Candidate]:
        found = [candidate for candidate in results if family in ("", candidate.family)]
        return sorted(found, key=results.__getitem__, reverse=True)[:count]

    measure([c for c in shapes() if options.family in ("", c.family)], 10, 0.45)
    print("round 1:", *(f"{results[c] / copy:6.1%} {c}" for c in best(30)), sep="\n", flush=True)

    leaders = best(12)
    residents = [replace(c, resident=n) for c in leaders if not c.stages for n in (0, FULL, 2, 3, 4, 5, 6, 8)]
    measure([replace(c, chunk=n) for c in residents for n in (1, 2, 4) if n == 1 or not c.words], 10, 0.6)
    grids = [replace(c, blocks_per_sm=n) for c in leaders for n in (1, 2, 3, 4, 6, 8) if c.stages or n > 1]
    bands = [replace(c, band=band) for c in leaders for band in (2, 4, 16, 24, 64, 128)]
    measure(grids + bands, 10, 0.7)
    print("round 2:", *(f"{results[c] / copy:6.1%} {c}" for c in best(30)), sep="\n", flush=True)
    measure([replace(c, load=load, store=store) for c in best(6) for load, store in c.hints()], 10, 0.95)

    finals = best(12)
    print("final, five times in turn with the copy (GB/s, % of copy):", flush=True)
    rounds = []
    for _ in range(5):
        copy = bench.gbytes_per_s(bench.copy, 30)
        rounds.append((copy, [bench.time(candidate, 30) for candidate in finals]))
    for i, candidate in enumerate(finals):
        shown = "  ".join(f"{times[i]:5.0f} {times[i] / copy:6.1%}" for copy, times in rounds)
        print(f"{shown}  {candidate}")
    bench.compilers.shutdown(cancel_futures=True)
    if options.csv:
        lines = [f"{value:.1f},{value / copy:.4f},{candidate}" for candidate, value in results.items()]
        options.csv.write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
