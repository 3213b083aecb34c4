// bankcheck: block=256
__global__ void count(const int* in, int* out) {
  __shared__ int total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  if (in[threadIdx.x] > 0) atomicAdd(&total, 1);  // every lane, one address
  __syncthreads();
  if (threadIdx.x == 0) *out = total;
}
