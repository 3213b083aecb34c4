// bankcheck: block=256
__global__ void total(const int* in, int* out) {
  __shared__ int sum[8];
  if (threadIdx.x < 8) sum[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&sum[threadIdx.x / 32], in[threadIdx.x]);  // all lanes of a warp, one address
  __syncthreads();
  if (threadIdx.x < 8) out[threadIdx.x] = sum[threadIdx.x];
}
