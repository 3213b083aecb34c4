// bankcheck: block=32
__global__ void fill(const char* in, float* out) {
  __shared__ __align__(512) char tile[32 * 144];
  const int lane = threadIdx.x;
  const unsigned to = (unsigned)__cvta_generic_to_shared(&tile[lane / 8 * 128 + lane % 8 * 16]);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(in + lane * 16));
  asm volatile("cp.async.wait_all;");
  __syncthreads();
  out[lane] = ((float*)tile)[lane];
}
