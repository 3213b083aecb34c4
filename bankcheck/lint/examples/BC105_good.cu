// bankcheck: block=256
__global__ void count(const int* in, int* out) {
  __shared__ int total[32];
  if (threadIdx.x < 32) total[threadIdx.x] = 0;
  __syncthreads();
  if (in[threadIdx.x] > 0) atomicAdd(&total[threadIdx.x % 32], 1);  // a counter for each lane
  __syncthreads();
  if (threadIdx.x < 32) out[threadIdx.x] = total[threadIdx.x];
}
