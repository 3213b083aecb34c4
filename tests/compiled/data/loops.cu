// Loops, divergence, calls and unknown data, for tests that compare fast-forward with full execution.
#include <cuda_pipeline.h>

template <int BM, int BN, int BK, int TM, int TN>
__global__ void __launch_bounds__((BM * BN) / (TM * TN)) tiled(int n, int k, const float* a, const float* b, float* c) {
  __shared__ float as[BM * BK];
  __shared__ float bs[BK * BN];
  const int col = threadIdx.x % (BN / TN), row = threadIdx.x / (BN / TN);
  a += blockIdx.y * BM * k;
  b += blockIdx.x * BN;
  float acc[TM * TN] = {0}, ra[TM], rb[TN];
  for (int at = 0; at < k; at += BK) {
    for (int i = threadIdx.x; i < BM * BK; i += blockDim.x) as[i] = a[i / BK * k + i % BK];
    for (int i = threadIdx.x; i < BK * BN; i += blockDim.x) bs[i] = b[i / BN * n + i % BN];
    __syncthreads();
    a += BK;
    b += BK * n;
    for (int d = 0; d < BK; d++) {
      for (int i = 0; i < TM; i++) ra[i] = as[(row * TM + i) * BK + d];
      for (int i = 0; i < TN; i++) rb[i] = bs[d * BN + col * TN + i];
      for (int i = 0; i < TM; i++)
        for (int j = 0; j < TN; j++) acc[i * TN + j] += ra[i] * rb[j];
    }
    __syncthreads();
  }
  for (int i = 0; i < TM; i++)
    for (int j = 0; j < TN; j++) c[(blockIdx.y * BM + row * TM + i) * n + blockIdx.x * BN + col * TN + j] = acc[i * TN + j];
}
template __global__ void tiled<64, 64, 8, 4, 4>(int, int, const float*, const float*, float*);

__global__ void pipeline(const float4* g, float* out, int n) {
  __shared__ float4 buffer[4][256];
  float acc = 0;
  for (int s = 0; s < 3; s++) {
    __pipeline_memcpy_async(&buffer[s][threadIdx.x], &g[s * 256 + threadIdx.x], 16);
    __pipeline_commit();
  }
  for (int i = 0; i < n; i++) {
    __pipeline_wait_prior(2);
    __syncthreads();
    float4 v = buffer[i % 4][threadIdx.x ^ 1];
    acc += v.x + v.y;
    if (i + 3 < n) __pipeline_memcpy_async(&buffer[(i + 3) % 4][threadIdx.x], &g[(i + 3) * 256 + threadIdx.x], 16);
    __pipeline_commit();
  }
  out[threadIdx.x] = acc;
}

__global__ void reduction(const float* g, float* out, int n) {
  extern __shared__ float s[];
  unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  float acc = 0;
  for (; i < n; i += gridDim.x * blockDim.x) acc += g[i];
  s[t] = acc;
  __syncthreads();
  for (unsigned k = 1; k < blockDim.x; k *= 2) {
    int j = 2 * k * t;
    if (j < blockDim.x) s[j] += s[j + k];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}

__global__ void uneven(float* out, int n) {
  __shared__ float s[64][64];
  int t = threadIdx.x;
  for (int i = 0; i < t % 7 + n; i++)
    for (int j = 0; j <= i % 5; j++) s[(i + j) & 63][(t * 3 + j) & 63] = i + j;
  __syncthreads();
  out[t] = s[t & 63][t >> 6];
}

__global__ void divided(int* out, int a, int b, int n) {
  __shared__ int s[4096];
  int t = threadIdx.x;
  for (int i = 0; i < n; i++) s[((t * 7 + i) / a * 33 + (t * 7 + i) % b + i / 3) & 4095] = i;
  __syncthreads();
  out[t] = s[t * a % 4096];
}

__global__ void guarded_by_data(const int* data, float* out, int n) {
  __shared__ float s[1024];
  int t = threadIdx.x;
  float x = 0;
  for (int i = 0; i < n; i++) {
    int v = data[i * 256 + t];
    if (v > 3) s[t * 2 & 1023] = v;
    x += s[(t * 3 + i * 32) & 1023];
  }
  out[t] = x;
}

__global__ void by_warp(const float4* g, float* out, int n) {
  __shared__ float4 b[2][128];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int i = 0; i < n; i++) {
    if (warp == 0)
      for (int k = 0; k < 4; k++) b[i & 1][lane + 32 * k] = g[i * 128 + k * 32 + lane];
    __syncthreads();
    if (warp > 0) out[threadIdx.x] += b[i & 1][(lane * warp) & 127].x;
    __syncthreads();
  }
}

__device__ __noinline__ int called(int x, float* s) {
  s[x * 3 & 1023] = x;
  return x * 2;
}

__global__ void calls(float* out, int n) {
  __shared__ float s[1024];
  int x = threadIdx.x;
  for (int i = 0; i < n; i++) x = called(x + i, s) & 511;
  __syncthreads();
  out[threadIdx.x] = s[x];
}

__global__ void endless(float* out) {
  __shared__ float s[1024];
  for (int i = 0;; i += 32) {
    s[(threadIdx.x + i) & 1023] += 1;
    __syncthreads();
  }
  out[threadIdx.x] = s[0];
}

__global__ void counted(float* out, int n) {
  __shared__ float s[1024];
  for (int i = 0; i < n; i++) {
    s[(threadIdx.x * 3 + i * 32) & 1023] += 1;
    __syncthreads();
  }
  out[threadIdx.x] = s[threadIdx.x];
}

__global__ void scrambled(float* out, int n) {
  __shared__ float s[1024];
  unsigned x = threadIdx.x;
  for (int i = 0; i < n; i++) {
    x = x * 1664525u + 1013904223u;
    s[(x >> 10) & 1023] += 1;
  }
  out[threadIdx.x] = s[threadIdx.x];
}

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

__global__ void recursive(float* out, int n) {
  __shared__ float s[1024];
  s[(fibonacci(n & 7) * 32 + threadIdx.x) & 1023] = 1;
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];
}

__global__ void no_shared(float* out, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i * 2] = out[i];
}

__global__ void switched(float* out, int mode) {
  __shared__ float s[1024];
  int t = threadIdx.x;
  switch ((t >> 5) + mode) {
    case 0: s[t] = 1; break;
    case 1: s[t * 2] = 2; break;
    case 2: s[t * 4 & 1023] = 3; break;
    case 3: s[t * 8 & 1023] = 5; break;
    case 4: s[t ^ 5] = 6; break;
    case 5: s[(t * t) & 1023] = 7; break;
    default: s[t * 3 & 1023] = 8;
  }
  __syncthreads();
  out[t] = s[t];
}

__global__ void waits_for_data(const int* data, float* out) {
  __shared__ float s[1024];
  int t = threadIdx.x, v = data[t];
  while (v > 0) {
    s[t] += 1;
    v = data[v];
  }
  __syncthreads();
  out[t] = s[t * 2 & 1023];
}
