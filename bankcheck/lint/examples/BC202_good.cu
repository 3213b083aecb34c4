// bankcheck: block=32
__global__ void pairs(const float* in, float* out) {
  __shared__ float tile[32][33];  // one word shifts it onto the odd ones
  for (int i = 0; i < 32; ++i) tile[i][threadIdx.x] = in[i * 32 + threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x / 16][threadIdx.x % 16 * 2];
}
