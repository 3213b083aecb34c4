// bankcheck: block=16,16
__global__ void transpose(const float* in, float* out) {
  __shared__ float tile[16][16];  // no padding: an XOR moves the column to banks that no other row is in
  const int x = threadIdx.x, y = threadIdx.y;
  tile[y][x ^ y] = in[y * 16 + x];
  __syncthreads();
  out[y * 16 + x] = tile[x][y ^ x];
}
