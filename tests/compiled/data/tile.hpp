// A shared-memory tile in the manner of layout libraries: the kernel that uses it never writes a subscript.
#pragma once

template <int Bits, int Base, int Shift>
struct Swizzle {
  __device__ static int apply(int offset) { return offset ^ ((offset >> Shift) & (((1 << Bits) - 1) << Base)); }
};

template <class Layout>
struct Tile {
  unsigned short* data;
  __device__ void store(int row, int column, uint4 value) const {
    *reinterpret_cast<uint4*>(data + Layout::apply(row * 64 + column)) = value;
  }
};
