// bankcheck: block=32,8
__global__ void stencil(const float* in, float* out) {
  __shared__ float tile[32][33];
  const int x = threadIdx.x, y = threadIdx.y;
  for (int i = 0; i < 32; i += 8) tile[y + i][x] = in[(y + i) * 32 + x];
  __syncthreads();
  for (int i = 0; i < 32; i += 8) out[(y + i) * 32 + x] = tile[x][y + i];
}
