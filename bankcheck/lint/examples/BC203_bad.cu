// bankcheck: block=16,16
__global__ void transpose(const float* in, float* out) {
  __shared__ float tile[16][17];  // helps the column below, but two rows of 16 now overlap in one bank
  const int x = threadIdx.x, y = threadIdx.y;
  tile[y][x] = in[y * 16 + x];
  __syncthreads();
  out[y * 16 + x] = tile[x][y];
}
