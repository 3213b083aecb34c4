// bankcheck: block=32
__global__ void strided(const float* in, float* out) {
  __shared__ float rows[32][33];
  for (int i = 0; i < 32; ++i) rows[i][threadIdx.x] = in[i * 32 + threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = rows[threadIdx.x][0];
}
