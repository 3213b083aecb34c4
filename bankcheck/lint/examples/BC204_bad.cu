// bankcheck: block=32
__global__ void strided(const float* in, float* out) {
  __shared__ float rows[4][1025];
  for (int i = threadIdx.x; i < 1024; i += 32) rows[0][i] = in[i];
  __syncthreads();
  out[threadIdx.x] = rows[0][threadIdx.x * 32];  // one row: the extra column is never stepped over
}
