#include "tile.hpp"

template <class Layout>
__device__ void fill(const uint4* in, unsigned short* storage) {
  Tile<Layout> tile{storage};
  tile.store(threadIdx.x & 63, (threadIdx.x >> 6) * 8, in[threadIdx.x]);  // every thread 16 bytes of a row of its own
}

__global__ void swizzled(const uint4* in, uint4* out) {
  __shared__ __align__(1024) unsigned short storage[64 * 64];
  fill<Swizzle<3, 3, 3>>(in, storage);
  __syncthreads();
  out[threadIdx.x] = reinterpret_cast<uint4*>(storage)[threadIdx.x];
}

__global__ void plain(const uint4* in, uint4* out) {
  __shared__ __align__(1024) unsigned short storage[64 * 64];
  fill<Swizzle<0, 3, 3>>(in, storage);
  __syncthreads();
  out[threadIdx.x] = reinterpret_cast<uint4*>(storage)[threadIdx.x];
}
