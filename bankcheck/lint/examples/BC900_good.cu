// bankcheck: block=32
__global__ void copy(const float* in, float* out) {
  __shared__ float line[64];
  line[threadIdx.x * 2] = in[threadIdx.x];  // bankcheck: ignore[BC101] two passes are fine here
  __syncwarp();
  out[threadIdx.x] = line[62 - threadIdx.x * 2];  // bankcheck: ignore[BC101] as above
}
