// bankcheck: block=32
__global__ void copy(const float* in, float* out) {
  __shared__ float line[32];
  line[threadIdx.x] = in[threadIdx.x];  // bankcheck: ignore[BC101] was a column once
  __syncwarp();
  out[threadIdx.x] = line[31 - threadIdx.x];
}
