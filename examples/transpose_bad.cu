// A 32x32 tile transposed through shared memory: the column read conflicts 32-way.
#define TILE 32

__global__ void transpose(const float* in, float* out, int n) {
  __shared__ float tile[TILE][TILE];
  const int x = threadIdx.x, y = threadIdx.y;
  for (int i = 0; i < TILE; i += 8) tile[y + i][x] = in[(y + i) * n + x];
  __syncthreads();
  for (int i = 0; i < TILE; i += 8) out[(y + i) * n + x] = tile[x][y + i];
}

void launch(const float* in, float* out, int n) { transpose<<<dim3(n / TILE, n / TILE), dim3(TILE, 8)>>>(in, out, n); }
