// bankcheck: block=256
__global__ void lookup(const int* in, float* out, const float* table) {
  __shared__ float line[256 * 32];
  for (int i = threadIdx.x; i < 256 * 32; i += 256) line[i] = table[i / 32];
  __syncthreads();
  out[threadIdx.x] = line[in[threadIdx.x] * 32 + threadIdx.x % 32];  // a copy for each bank: clean for every index
}
