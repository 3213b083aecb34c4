// bankcheck: block=256
__global__ void reverse(const float* in, float* out) {
  __shared__ float line[256];
  line[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = line[255 - threadIdx.x];
}
