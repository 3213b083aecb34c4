// bankcheck: block=32
__global__ void broken(const float* in, float* out) {
  __shared__ float line[32];
  line[threadIdx.x = in[threadIdx.x];
  out[threadIdx.x] = line[threadIdx.x];
}
