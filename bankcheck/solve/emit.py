"""The chosen layout as code: a CUDA index function, a CuTe layout, a TMA swizzle mode, a Python function."""

from __future__ import annotations

from math import prod

from bankcheck.layout import TMA_SWIZZLES
from bankcheck.solve.layouts import Layout, formula_of
from bankcheck.solve.problem import Tile

LANGUAGES = ("cuda", "cute", "python")


def title(layout: Layout, tile: Tile) -> str:
    """The layout in a few words: `Swizzle<3,3,3>`, `half A[64][72]`, `(column + 8 * row) % 64`."""
    parts = []
    if layout.pad:
        parts.append(declaration(layout, tile))
    if layout.swizzle is not None:
        parts.append(str(layout.swizzle))
    if layout.xor is not None or layout.rotation:
        column = formula_of(layout, tile).value.partition(" + ")[2]
        parts.append(column[1:-1] if column.endswith(")") else column)
    return ", ".join(parts) or "unchanged"


def declaration(layout: Layout, tile: Tile) -> str:
    """The array with its padding, as C declares it."""
    lengths = [*tile.shape[:-1], tile.shape[-1] + layout.pad]
    if len(tile.shape) == 1:
        lengths = [tile.rows * layout.pitch(tile)]
    return f"{tile.type_name} {tile.name}{''.join(f'[{length}]' for length in lengths)}"


def cuda(layout: Layout, tile: Tile) -> str:
    """A `__device__` function from (row, column), or from the element, to the index in a one-dimensional array."""
    formula = formula_of(layout, tile)
    size = layout.storage_bytes(tile) // tile.element_bytes
    parameters = ", ".join(f"int {name}" for name in formula.parameters)
    arguments = ", ".join(formula.parameters)
    lines = [
        f"// {tile.type_name} {tile.name}[{size}]; {_original(tile)} is {tile.name}[{tile.name}_index({arguments})]"
    ]
    if len(tile.shape) > 2:
        lines.append(f"// row: all dimensions but the last, {' x '.join(map(str, tile.shape[:-1]))}")
    lines += [f"__device__ __forceinline__ int {tile.name}_index({parameters})", "{"]
    lines += [f"    int {name} = {value};" for name, value in formula.steps]
    return "\n".join([*lines, f"    return {formula.value};", "}"])


def python(layout: Layout, tile: Tile) -> str:
    """The same function in Python."""
    formula = formula_of(layout, tile)
    parameters = ", ".join(f"{name}: int" for name in formula.parameters)
    lines = [f"def {tile.name}_index({parameters}) -> int:"]
    lines += [f"    {name} = {value}" for name, value in formula.steps]
    return "\n".join([*lines, f"    return {formula.value}"]).replace(" / ", " // ")


def cute(layout: Layout, tile: Tile) -> str | None:
    """The layout in CuTe's terms, or None: it has no rotation, and no XOR of padded or odd rows."""
    if layout.xor is not None or layout.rotation:
        return None
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    if len(tile.shape) > 1:
        shape, stride = (tile.rows, tile.columns), (layout.pitch(tile), 1)
    elif layout.pad:  # CuTe counts through the first mode first
        shape, stride = (tile.columns, tile.rows), (1, layout.pitch(tile))
    else:
        shape, stride = (prod(tile.shape),), (1,)
    plain = f"make_layout(make_shape({_integers(shape)}), make_stride({_integers(stride)}))"
    return plain if layout.swizzle is None else f"composition({layout.swizzle}{{}}, {plain})"


def tma_mode(layout: Layout, tile: Tile) -> str | None:
    """The TMA swizzle that leaves the tile in this layout ("128B"), or None; rows have exactly that many bytes."""
    row_bytes = tile.columns * tile.element_bytes
    swizzle = TMA_SWIZZLES.get(f"{row_bytes}B")
    if swizzle is None or layout.swizzle is None or layout.pad or tile.element_bytes & (tile.element_bytes - 1):
        return None
    own = layout.swizzle.scaled(tile.element_bytes)
    bits = (1 << bit for bit in range((tile.size_bytes - 1).bit_length()))  # both are linear: the bits decide
    return f"{row_bytes}B" if all(own(bit) == swizzle(bit) for bit in bits) else None


def code(language: str, layout: Layout, tile: Tile) -> str | None:
    """The layout in one of LANGUAGES, or None where that has no form for it."""
    return {"cuda": cuda, "cute": cute, "python": python}[language](layout, tile)


def _integers(values: tuple[int, ...]) -> str:
    return ", ".join(f"Int<{value}>{{}}" for value in values)


def _original(tile: Tile) -> str:
    return f"{tile.name}[element]" if len(tile.shape) == 1 else f"{tile.name}[row][column]"
