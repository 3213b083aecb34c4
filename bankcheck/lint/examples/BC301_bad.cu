// bankcheck: block=32
__global__ void vectors(const float* in, float4* out) {
  __shared__ __align__(16) float tile[32][33];
  for (int i = 0; i < 32; ++i) tile[i][threadIdx.x] = in[i * 32 + threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = *(float4*)&tile[threadIdx.x][0];  // rows are 132 bytes apart: not a multiple of 16
}
