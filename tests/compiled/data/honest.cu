// What cannot be followed is said with its true reason; what can must not be lost to it.
#include <assert.h>
#include <stdio.h>

__global__ void estimated(float* out) {
  __shared__ float s[2048];
  s[(int)exp2f(threadIdx.x * 0.1f) & 1023] = 1;
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];
}

__global__ void not_given(float* out, float scale) {
  __shared__ float s[2048];
  s[(int)(threadIdx.x * scale) & 1023] = 1;
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];
}

__global__ void data_dependent(float* out, const int* in) {
  __shared__ float s[2048];
  s[(int)exp2f(in[threadIdx.x] * 0.1f) & 1023] = 1;
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];
}

__device__ __noinline__ int walk(int x, int depth, int mode) {
  if (depth == 0) return x;
  switch (mode & 7) {
    case 0: return walk(x * 2, depth - 1, mode >> 3) + 1;
    case 1: return walk(x ^ 5, depth - 1, mode >> 3);
    case 2: return walk(x + 7, depth - 1, mode >> 3) * 3;
    case 3: return walk(x >> 1, depth - 1, mode >> 3) - 2;
    case 4: return walk(x * 5, depth - 1, mode >> 3);
    case 5: return walk(x | 9, depth - 1, mode >> 3) + x;
    case 6: return walk(x & 77, depth - 1, mode >> 3) ^ x;
    default: return walk(x - 3, depth - 1, mode >> 3);
  }
}
__global__ void recursion_and_switch(float* out, int depth, int mode) {
  __shared__ float s[1024];
  s[walk(threadIdx.x, depth, mode) & 1023] = 1;
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];
}

__device__ __noinline__ void store_one(float* p, int i) { p[i] = 1; }
__device__ __noinline__ void store_two(float* p, int i) { p[2 * i] = 1; }
__device__ void (*const stores[])(float*, int) = {store_one, store_two};
__global__ void through_a_pointer(float* out, int which) {
  __shared__ float s[1024];
  s[threadIdx.x] = 0;
  stores[which](s, threadIdx.x);
  out[threadIdx.x] = s[threadIdx.x];
}

__global__ void prints(float* out, int n) {
  __shared__ float s[2048];
  int t = threadIdx.x;
  if (t == 3) printf("%d\n", n);
  assert(n > 0);
  s[t * 2] = 2;
  __syncthreads();
  out[t] = s[t];
}

__global__ void filled_with_zeros(const float* in, int valid, int whole) {
  __shared__ __align__(16) float s[1024];
  int t = threadIdx.x;
  unsigned to = (unsigned)__cvta_generic_to_shared(&s[t]);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(in + t), "r"(t < valid ? 4 : 0));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to + 512), "l"(in + t), "r"(whole > 0 ? 4 : 0));
  asm volatile("cp.async.wait_all;");
}

#if __CUDA_ARCH__ >= 900
__global__ void __cluster_dims__(2, 1, 1) of_the_other_block(float* out) {
  __shared__ float s[128];
  unsigned mine = (unsigned)__cvta_generic_to_shared(&s[threadIdx.x]), other;
  asm volatile("mapa.shared::cluster.u32 %0, %1, 1;" : "=r"(other) : "r"(mine));
  asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(other), "f"(1.f));
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];
}
#endif
