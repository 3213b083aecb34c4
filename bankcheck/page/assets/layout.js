// Where an element of an array is stored: row-major, with padded rows, and with an XOR swizzle.
//
// An array is { name, element, dims, elementBytes, columns, matrixRows, sizeBytes, swizzleUnitBytes }; `matrixRows` are
// the rows of one matrix in a stack of them, 0 for a single one. A layout is { pad, swizzle }: elements added to each
// row, and "off", "xor" (column ^= row) or [B, M, S] (CuTe's Swizzle<B,M,S> on offsets of `swizzleUnitBytes`). Layouts
// that `solve` finds may also have columnXor: [bits, shift, target], rotation: columns per row, and a name.

// The byte offset at which `columnBytes` of `row` are stored.
function storedBytes(array, layout, row, columnBytes) {
  const pitch = (array.columns + layout.pad) * array.elementBytes;
  const column = Math.floor(columnBytes / array.elementBytes);
  const moved = movedColumn(array, layout, row, column);
  const offset = row * pitch + columnBytes + (moved - column) * array.elementBytes;
  return Array.isArray(layout.swizzle) ? swizzledBytes(array, layout.swizzle, offset) : offset;
}

function swizzledBytes({ swizzleUnitBytes: unit }, [bits, base, shift], offset) {
  const place = Math.floor(offset / unit);
  return swizzled({ bits, base, shift }, place) * unit + floorMod(offset, unit);
}

function movedColumn(array, { swizzle, columnXor, rotation }, row, column) {
  if (swizzle === "xor") return column ^ (array.matrixRows ? floorMod(row, array.matrixRows) : row);
  if (columnXor) {
    const [bits, shift, target] = columnXor;
    return column ^ (((row >> shift) & (2 ** bits - 1)) << target);
  }
  return rotation ? floorMod(column + rotation * row, array.columns) : column;
}

function byteSwizzle(array, [bits, base, shift]) {
  return { bits, base: base + Math.log2(array.swizzleUnitBytes), shift };
}

// Source: CUTLASS include/cute/swizzle.hpp. BigInt, because offsets may be negative or beyond 32 bits.
function swizzled({ bits, base, shift }, offset) {
  const mask = ((1n << BigInt(bits)) - 1n) << BigInt(base + Math.max(0, shift));
  const source = BigInt(offset) & mask;
  const field = shift >= 0 ? source >> BigInt(shift) : source << BigInt(-shift);
  return Number(BigInt(offset) ^ field);
}

const MAX_BIT = 30;
const MAX_CHECKED_BYTES = 2 ** 20;

// Why a swizzle cannot be used for an access of `bytesPerLane`, or "".
function swizzleProblem(array, layout, bytesPerLane) {
  if (!Array.isArray(layout.swizzle)) return "";
  const [bits, base, shift] = layout.swizzle;
  if (![bits, base, shift].every(Number.isInteger)) return "B, M and S are whole numbers";
  if (bits < 0 || base < 0 || Math.abs(shift) < bits) return "B and M must be at least 0, and |S| at least B";
  const inBytes = byteSwizzle(array, layout.swizzle);
  if (!Number.isInteger(inBytes.base)) return `elements of ${array.elementBytes} bytes are no power of two`;
  if (bits + inBytes.base + Math.abs(shift) > MAX_BIT) return `it reaches past bit ${MAX_BIT} of the offset`;
  if (bits > 0 && 2 ** inBytes.base < bytesPerLane) {
    return `it takes the ${bytesPerLane} bytes of a lane apart: M must be at least ` +
      Math.ceil(Math.log2(bytesPerLane / array.swizzleUnitBytes));
  }
  return escapeProblem(array, layout, inBytes);
}

function escapeProblem(array, layout, inBytes) {
  const size = array.sizeBytes && (array.sizeBytes / array.columns) * (array.columns + layout.pad);
  if (size > MAX_CHECKED_BYTES) return "the array is too large to check here that the map stays inside it";
  const step = 2 ** inBytes.base;
  for (let offset = 0; offset < size; offset += step) {
    const last = Math.min(offset + step, size) - 1;
    const moved = swizzled(inBytes, last);
    if (moved >= size) return `it would store byte ${last} at byte ${moved}, outside the array's ${size} bytes`;
  }
  return "";
}

// The array as C declares it, its padding included.
function declarationOf(array, layout) {
  const added = array.dims.length > 1 ? layout.pad : layout.pad * rowsOf(array);
  const dims = array.dims.map((size, at) => (at === array.dims.length - 1 && size ? size + added : size || ""));
  return `${array.element} ${array.name}${dims.map((size) => `[${size}]`).join("")}`;
}

// A layout in words.
function layoutName(array, layout) {
  if (layout.name) return layout.name;
  const parts = [];
  if (layout.pad) parts.push(`rows padded by ${plural(layout.pad, "element")}`);
  if (layout.swizzle === "xor") parts.push("column ^= row");
  else if (Array.isArray(layout.swizzle)) {
    parts.push(`Swizzle<${layout.swizzle.join(",")}>${array.swizzleUnitBytes === 1 ? " on bytes" : ""}`);
  }
  return parts.join(", ") || "no padding, no swizzle";
}

const rowsOf = (array) => (array.columns ? array.sizeBytes / (array.columns * array.elementBytes) : 1);

const keyOf = ({ pad, swizzle, columnXor = null, rotation = 0 }) => JSON.stringify([pad, swizzle, columnXor, rotation]);
const sameLayout = (one, other) => keyOf(one) === keyOf(other);
