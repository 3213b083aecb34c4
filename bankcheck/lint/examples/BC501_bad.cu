// bankcheck: block=32,8
__global__ void copy(const float* in, float* out) {
  out[threadIdx.y * 32 + threadIdx.x] = in[threadIdx.x * 32 + threadIdx.y];  // a column
}
