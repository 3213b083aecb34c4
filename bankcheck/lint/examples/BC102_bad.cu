// bankcheck: block=32
__global__ void columns(const float* in, float* out, int pitch) {
  extern __shared__ float rows[];
  for (int i = 0; i < 32; ++i) rows[i * pitch + threadIdx.x] = in[i * 32 + threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = rows[threadIdx.x * pitch];  // free of conflicts only if pitch is odd
}
