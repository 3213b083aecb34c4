// A 32x32 tile transposed through shared memory: column ^ row spreads a column without extra memory.
#define TILE 32

__global__ void transpose(const float* in, float* out, int n) {
  __shared__ float tile[TILE][TILE];
  const int x = threadIdx.x, y = threadIdx.y;
  for (int i = 0; i < TILE; i += 8) tile[y + i][x ^ (y + i)] = in[(y + i) * n + x];
  __syncthreads();
  for (int i = 0; i < TILE; i += 8) out[(y + i) * n + x] = tile[x][(y + i) ^ x];
}

void launch(const float* in, float* out, int n) { transpose<<<dim3(n / TILE, n / TILE), dim3(TILE, 8)>>>(in, out, n); }
