// bankcheck: block=256
__global__ void reduce(const float* in, float* out) {
  __shared__ float part[256];
  const int tid = threadIdx.x;
  part[tid] = in[tid];
  __syncthreads();
  for (int s = 128; s > 0; s >>= 1) {
    if (tid < s) {
      part[tid] += part[tid + s];
      __syncthreads();  // only the first s threads arrive
    }
  }
  if (tid == 0) *out = part[0];
}
