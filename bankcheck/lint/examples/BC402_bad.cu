// bankcheck: block=256
__global__ void reverse(const float* in, float* out) {
  __shared__ float line[256];
  line[threadIdx.x] = in[threadIdx.x];
  out[threadIdx.x] = line[255 - threadIdx.x];  // another thread's element, perhaps not yet written
}
