// bankcheck: block=256
__global__ void total(const int* in, int* out) {
  __shared__ int sum[8];
  if (threadIdx.x < 8) sum[threadIdx.x] = 0;
  __syncthreads();
  int part = __reduce_add_sync(~0u, in[threadIdx.x]);  // within the warp first
  if (threadIdx.x % 32 == 0) atomicAdd(&sum[threadIdx.x / 32], part);
  __syncthreads();
  if (threadIdx.x < 8) out[threadIdx.x] = sum[threadIdx.x];
}
