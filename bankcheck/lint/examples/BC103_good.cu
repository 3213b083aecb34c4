#include <cuda_fp16.h>
// bankcheck: block=32
__global__ void fragments(const uint4* in, unsigned* out) {
  __shared__ __align__(128) half tile[16][64];
  const int lane = threadIdx.x;
  for (int i = 0; i < 4; ++i) {
    const int row = i * 4 + lane / 8;
    *(uint4*)&tile[row][(lane % 8 ^ row % 8) * 8] = in[i * 32 + lane];
  }
  __syncwarp();
  unsigned r[4];
  const int row = lane % 16;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"((unsigned)__cvta_generic_to_shared(&tile[row][(lane / 16 ^ row % 8) * 8])));
  out[lane] = r[0] + r[1] + r[2] + r[3];
}
