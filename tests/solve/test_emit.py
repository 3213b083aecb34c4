"""The emitted code, compiled and run: it is the layout at every coordinate."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import pytest

from bankcheck.hardware import rule_for
from bankcheck.layout import TMA_SWIZZLES, Swizzle
from bankcheck.solve import emit
from bankcheck.solve.families import FAMILIES, Limits, space_of
from bankcheck.solve.layouts import ColumnXor, Layout, formula_of
from bankcheck.solve.problem import Problem, Tile, tile_access
from tests.verify.nvrtc import compile_cubin, find_library

from .brute import swizzled

TILES = [
    Tile("a", "float", 4, 32, 32),
    Tile("b", "half", 2, 16, 64),
    Tile("c", "float", 4, 24, 40),
    Tile("d", "float", 4, 16, 8, (2, 8, 8)),
    Tile("e", "float", 4, 16, 32, (512,)),
    Tile("f", "float", 4, 10, 24, (240,)),
    Tile("g", "char", 1, 1, 64, (1, 64)),
]


def members(tile: Tile) -> list[Layout]:
    """Every fifth layout of every family, and the first padded swizzles."""
    access = tile_access("row", rule_for("ld.shared.b8"), [((0, 0),) * 32], tile)
    space = space_of(Problem(tile, (access,)), Limits())
    found = [layout for family in FAMILIES[:-1] for layout in space.members(family)[::5]]
    return found + [layout for pad in space.swizzled_pads()[:2] for layout in space.padded_swizzles(pad)[::11]]


def offset_of(layout: Layout, tile: Tile, row: int, column: int) -> int:
    """The layout's definition, step by step, without the solver."""
    if layout.xor is not None:
        for bit in range(layout.xor.bits):
            column ^= (row >> layout.xor.shift + bit & 1) << layout.xor.target + bit
    column = (column + layout.rotation * row) % tile.columns
    offset = row * (tile.columns + layout.pad) + column
    if layout.swizzle is not None:
        offset = swizzled(offset, layout.swizzle.bits, layout.swizzle.base, layout.swizzle.shift)
    return offset


def arguments(tile: Tile, row: int, column: int) -> tuple[int, ...]:
    return (row, column) if len(tile.shape) > 1 else (row * tile.columns + column,)


@pytest.mark.parametrize("tile", TILES, ids=lambda tile: tile.name)
def test_python_is_the_layout(tile: Tile) -> None:
    for layout in members(tile):
        names: dict[str, Any] = {}
        exec(emit.python(layout, tile), names)
        for row in range(tile.rows):
            offsets = layout.offsets(tile, [(row, column) for column in range(tile.columns)])
            for column in range(tile.columns):
                expected = offset_of(layout, tile, row, column)
                assert names[f"{tile.name}_index"](*arguments(tile, row, column)) == expected == offsets[column], layout


def cuda_sources() -> list[tuple[Tile, Layout, str]]:
    found = []
    for tile in TILES:
        for number, layout in enumerate(members(tile)):
            text = emit.cuda(layout, tile).replace(f"{tile.name}_index(int", f"{tile.name}_{number}(int")
            found.append((tile, layout, text))
    return found


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_cuda_compiled_as_cpp_is_the_layout(tmp_path: Path) -> None:
    sources = cuda_sources()
    head = '#define __device__ extern "C"\n#define __forceinline__\n'
    (tmp_path / "all.cpp").write_text(head + "\n".join(text for _, _, text in sources))
    library = tmp_path / "all.so"
    subprocess.run(
        ["g++", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", tmp_path / "all.cpp", "-o", library], check=True
    )
    compiled = ctypes.CDLL(str(library))
    for tile, layout, text in sources:
        name = re.search(r"(\w+)\(int", text)
        assert name is not None
        function: Callable[..., int] = getattr(compiled, name[1])
        for row in range(tile.rows):
            for column in range(tile.columns):
                assert function(*arguments(tile, row, column)) == offset_of(layout, tile, row, column), text


@pytest.mark.skipif(find_library() is None, reason="NVRTC is not installed")
def test_cuda_compiles_for_the_gpu(tmp_path: Path) -> None:
    sources = cuda_sources()
    calls = "\n".join(
        f"    out[{at}] = {name[1]}({'i, j' if len(tile.shape) > 1 else 'i'});"
        for at, (tile, _, text) in enumerate(sources)
        if (name := re.search(r"(\w+)\(int", text))
    )
    kernel = f'\nextern "C" __global__ void all(int* out, int i, int j)\n{{\n{calls}\n}}\n'
    path = tmp_path / "all.cu"
    path.write_text("\n".join(text for _, _, text in sources) + kernel)
    assert compile_cubin(path, "sm_90")


@cache
def read_cute(text: str) -> tuple[list[tuple[int, int]], tuple[int, ...] | None]:
    """(size, stride) of every mode, and the swizzle, of `composition(Swizzle<B,M,S>{}, make_layout(shape, stride))`."""
    shape, stride = (
        [int(size) for size in re.findall(r"Int<(\d+)>", part)]
        for part in re.findall(r"make_(?:shape|stride)\(([^()]*)\)", text)
    )
    match = re.search(r"Swizzle<(\d+),(\d+),(-?\d+)>", text)
    return list(zip(shape, stride, strict=True)), tuple(map(int, match.groups())) if match else None


def evaluated_cute(text: str, index: int) -> int:
    """The offset of a colexicographic index."""
    modes, swizzle = read_cute(text)
    offset = 0
    for size, step in modes:
        offset += index % size * step
        index //= size
    assert index == 0
    return swizzled(offset, *swizzle) if swizzle else offset


@pytest.mark.parametrize("tile", TILES, ids=lambda tile: tile.name)
def test_cute_is_the_layout(tile: Tile) -> None:
    shown = 0
    for layout in members(tile):
        text = emit.cute(layout, tile)
        assert (text is None) == bool(layout.xor or layout.rotation)
        if text is not None:
            shown += 1
            for row in range(tile.rows):
                for column in range(tile.columns):
                    index = row + column * tile.rows if len(tile.shape) > 1 else row * tile.columns + column
                    assert evaluated_cute(text, index) == offset_of(layout, tile, row, column), text
    assert shown


def test_tma_modes_are_the_measured_swizzles() -> None:
    for mode, swizzle in TMA_SWIZZLES.items():
        columns = int(mode[:-1]) // 2
        tile = Tile("t", "half", 2, 64, columns)
        on_elements = Swizzle(swizzle.bits, swizzle.base - 1, swizzle.shift)
        assert emit.tma_mode(Layout(swizzle=on_elements), tile) == mode
        assert emit.tma_mode(Layout(swizzle=Swizzle(1, 4, 4)), tile) is None
        assert emit.tma_mode(Layout(8, swizzle=on_elements), tile) is None
    assert (
        emit.tma_mode(Layout(swizzle=Swizzle(2, 3, 3)), Tile("t", "half", 2, 4, 64)) == "128B"
    )  # 4 rows: the same map
    assert emit.tma_mode(Layout(swizzle=Swizzle(3, 3, 3)), Tile("t", "half", 2, 64, 128)) is None


def test_operations_are_those_of_the_formula() -> None:
    square = Tile("s", "float", 4, 32, 32)
    expected = {
        Layout(): 2,
        Layout(1): 2,
        Layout(swizzle=Swizzle(5, 0, 5)): 3,
        Layout(swizzle=Swizzle(2, 0, 5)): 4,
        Layout(swizzle=Swizzle(2, 1, 5)): 4,
        Layout(swizzle=Swizzle(2, 1, 6)): 5,
        Layout(swizzle=Swizzle(2, 0, -3)): 5,
        Layout(rotation=1): 4,
        Layout(rotation=3): 5,
        Layout(1, xor=ColumnXor(5, 0, 0)): 3,
    }
    assert {layout: formula_of(layout, square).operations for layout in expected} == expected
    odd = Tile("s", "float", 4, 32, 33)
    assert formula_of(Layout(rotation=1), odd).operations == 2 + 1 + 4


def test_titles_name_the_change() -> None:
    tile = Tile("t", "half", 2, 64, 64, (2, 32, 64))
    assert emit.title(Layout(), tile) == "unchanged"
    assert emit.title(Layout(8), tile) == "half t[2][32][72]"
    assert emit.title(Layout(8, swizzle=Swizzle(2, 3, 3)), tile) == "half t[2][32][72], Swizzle<2,3,3>"
    assert prod(tile.shape) == tile.rows * tile.columns
