// Kernels of the kinds that real code has; kinds_h200.jsonl holds what Nsight Compute 2025.3.1 counted for each
// instruction on an NVIDIA H200 (driver 580.159.04, nvcc 13.0 -arch=sm_90 -lineinfo; all arrays zero).
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_fp16.h>
#include <mma.h>
#include <assert.h>
#include <stdio.h>
namespace cg = cooperative_groups;

__device__ __forceinline__ unsigned to_shared(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

__global__ void reduce_shuffle(const float* in, float* out, int n) {
  __shared__ float partial[32];
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += in[i];
  for (int o = 16; o > 0; o >>= 1) sum += __shfl_down_sync(~0u, sum, o);
  int lane = threadIdx.x % warpSize, warp = threadIdx.x / warpSize;
  if (lane == 0) partial[warp] = sum;
  __syncthreads();
  sum = threadIdx.x < blockDim.x / warpSize ? partial[lane] : 0;
  if (warp == 0) {
    for (int o = 16; o > 0; o >>= 1) sum += __shfl_down_sync(~0u, sum, o);
    if (lane == 0) out[blockIdx.x] = sum;
  }
}

__global__ void reduce_tree(const float* in, float* out, int n) {
  extern __shared__ float s[];
  unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x * 2 + t;
  s[t] = (i < n ? in[i] : 0) + (i + blockDim.x < n ? in[i + blockDim.x] : 0);
  __syncthreads();
  for (unsigned step = 1; step < blockDim.x; step *= 2) {
    unsigned at = 2 * step * t;
    if (at < blockDim.x) s[at] += s[at + step];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}

#define PAD(x) ((x) + ((x) >> 5))
template <bool padded> __global__ void scan_blelloch(const int* in, int* out, int n) {
  extern __shared__ int x[];
  int t = threadIdx.x, step = 1;
  int a = padded ? PAD(2 * t) : 2 * t, b = padded ? PAD(2 * t + 1) : 2 * t + 1;
  x[a] = in[2 * t];
  x[b] = in[2 * t + 1];
  for (int d = n >> 1; d > 0; d >>= 1) {
    __syncthreads();
    if (t < d) {
      int i = step * (2 * t + 1) - 1, j = step * (2 * t + 2) - 1;
      if (padded) { i = PAD(i); j = PAD(j); }
      x[j] += x[i];
    }
    step *= 2;
  }
  if (t == 0) x[padded ? PAD(n - 1) : n - 1] = 0;
  for (int d = 1; d < n; d *= 2) {
    step >>= 1;
    __syncthreads();
    if (t < d) {
      int i = step * (2 * t + 1) - 1, j = step * (2 * t + 2) - 1;
      if (padded) { i = PAD(i); j = PAD(j); }
      int k = x[i];
      x[i] = x[j];
      x[j] += k;
    }
  }
  __syncthreads();
  out[2 * t] = x[a];
  out[2 * t + 1] = x[b];
}

__global__ void scan_warps(const int* in, int* out) {
  __shared__ int totals[33];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, v = in[threadIdx.x];
  for (int d = 1; d < 32; d *= 2) {
    int u = __shfl_up_sync(~0u, v, d);
    if (lane >= d) v += u;
  }
  if (lane == 31) totals[warp] = v;
  __syncthreads();
  if (warp == 0) {
    int w = lane < (blockDim.x >> 5) ? totals[lane] : 0;
    for (int d = 1; d < 32; d *= 2) {
      int u = __shfl_up_sync(~0u, w, d);
      if (lane >= d) w += u;
    }
    totals[lane] = w;
  }
  __syncthreads();
  out[threadIdx.x] = v + (warp ? totals[warp - 1] : 0);
}

__global__ void bitonic(int* data) {
  __shared__ int s[512];
  int t = threadIdx.x;
  s[t] = data[t];
  s[t + 256] = data[t + 256];
  for (int size = 2; size <= 512; size <<= 1)
    for (int stride = size >> 1; stride > 0; stride >>= 1) {
      __syncthreads();
      int at = 2 * t - (t & (stride - 1));
      int a = s[at], b = s[at + stride];
      bool up = (t & (size >> 1)) == 0;
      if ((a > b) == up) {
        s[at] = b;
        s[at + stride] = a;
      }
    }
  __syncthreads();
  data[t] = s[t];
  data[t + 256] = s[t + 256];
}

__global__ void histogram(const unsigned char* in, unsigned* out, int n) {
  __shared__ unsigned bins[4][256];
  for (int i = threadIdx.x; i < 1024; i += blockDim.x) (&bins[0][0])[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
    atomicAdd(&bins[threadIdx.x / 32 % 4][in[i]], 1);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    atomicAdd(out + i, bins[0][i] + bins[1][i] + bins[2][i] + bins[3][i]);
}

__global__ void transpose3d(const float* in, float* out, int nx, int ny, int nz) {
  __shared__ float tile[32][33];
  int tiles = (nx + 31) / 32, bx = blockIdx.x % tiles, bz = blockIdx.x / tiles, y = blockIdx.y;
  for (int j = threadIdx.y; j < 32; j += blockDim.y) {
    int x = bx * 32 + threadIdx.x, z = bz * 32 + j;
    if (x < nx && z < nz) tile[j][threadIdx.x] = in[(z * ny + y) * nx + x];
  }
  __syncthreads();
  for (int j = threadIdx.y; j < 32; j += blockDim.y) {
    int z = bz * 32 + threadIdx.x, x = bx * 32 + j;
    if (x < nx && z < nz) out[((size_t)x * ny + y) * nz + z] = tile[threadIdx.x][j];
  }
}

__global__ void im2col(const float* in, float* out, int channels, int height, int width, int kernel, int pad, int stride) {
  __shared__ float line[2048];
  int oh = (height + 2 * pad - kernel) / stride + 1, ow = (width + 2 * pad - kernel) / stride + 1;
  int total = channels * oh * ow;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += blockDim.x * gridDim.x) {
    int w = i % ow, h = i / ow % oh, c = i / ow / oh;
    for (int a = 0; a < kernel; a++)
      for (int b = 0; b < kernel; b++) {
        int y = h * stride - pad + a, x = w * stride - pad + b;
        bool inside = y >= 0 && x >= 0 && y < height && x < width;
        float v = inside ? in[(c * height + y) * width + x] : 0.f;
        line[(threadIdx.x * kernel + a) * kernel + b & 2047] = v;
        out[((c * kernel + a) * kernel + b) * (oh * ow) + h * ow + w] = v;
      }
  }
  __syncthreads();
  out[threadIdx.x] = line[threadIdx.x];
}

__device__ __forceinline__ void copy16(void* to, const void* from, bool valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to_shared(to)), "l"(from), "r"(valid ? 16 : 0));
}
__device__ __forceinline__ void copy4(void* to, const void* from, int bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to_shared(to)), "l"(from), "r"(bytes));
}

template <int STAGES> __global__ void __launch_bounds__(128) gemm_async(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ __align__(16) float as[STAGES][32][20], bs[STAGES][16][32];
  int t = threadIdx.x, row = blockIdx.y * 32, col = blockIdx.x * 32;
  float acc[2][4] = {};
  auto load = [&](int stage, int k0) {
    int r = t / 4, q = t % 4 * 4;
    bool ok = row + r < m && k0 + q < k;
    copy16(&as[stage][r][q], ok ? a + (row + r) * k + k0 + q : a, ok);
    int kr = t / 8, kq = t % 8 * 4;
    bool okb = k0 + kr < k && col + kq < n;
    copy16(&bs[stage][kr][kq], okb ? b + (k0 + kr) * n + col + kq : b, okb);
    asm volatile("cp.async.commit_group;");
  };
  int tiles = (k + 15) / 16;
  for (int s = 0; s < STAGES - 1; s++) load(s, s * 16);
  for (int i = 0; i < tiles; i++) {
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
    __syncthreads();
    load((i + STAGES - 1) % STAGES, (i + STAGES - 1) * 16);
    int s = i % STAGES;
#pragma unroll
    for (int x = 0; x < 16; x++) {
      float4 bv = *(float4*)&bs[s][x][t % 8 * 4];
      for (int y = 0; y < 2; y++) {
        float av = as[s][t / 8 * 2 + y][x];
        acc[y][0] += av * bv.x; acc[y][1] += av * bv.y; acc[y][2] += av * bv.z; acc[y][3] += av * bv.w;
      }
    }
  }
  for (int y = 0; y < 2; y++)
    for (int x = 0; x < 4; x++) {
      int rr = row + t / 8 * 2 + y, cc = col + t % 8 * 4 + x;
      if (rr < m && cc < n) c[rr * n + cc] = acc[y][x];
    }
}

__global__ void async_zero_fill(const float* in, float* out, int n) {
  __shared__ float s[512];
  int t = threadIdx.x;
  copy4(&s[t * 2], in + t, t < n ? 4 : 0);
  copy4(&s[t * 2 + 1], in + 256 + t, n > 1000 ? 4 : 0);
  asm volatile("cp.async.wait_all;");
  __syncthreads();
  out[t] = s[t] + s[t + 256];
}

template <bool swizzled> __global__ void __launch_bounds__(128) mma_ldmatrix(const half* a, const half* b, float* c, int k) {
  __shared__ __align__(128) half as[64 * 32], bs[32 * 32];
  int t = threadIdx.x, warp = t / 32, lane = t % 32;
  float acc[4][4] = {};
  auto at = [](int row, int chunk) { return row * 32 + (swizzled ? (chunk ^ (row >> 1 & 3)) : chunk) * 8; };
  for (int k0 = 0; k0 < k; k0 += 32) {
    for (int i = t; i < 256; i += 128) *(uint4*)&as[at(i / 4, i % 4)] = *(const uint4*)&a[i / 4 * k + k0 + i % 4 * 8];
    for (int i = t; i < 128; i += 128) *(uint4*)&bs[at(i / 4, i % 4)] = *(const uint4*)&b[i / 4 * k + k0 + i % 4 * 8];
    __syncthreads();
    for (int kk = 0; kk < 2; kk++) {
      unsigned x[4], y[4][2];
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(to_shared(&as[at(warp * 16 + lane % 16, kk * 2 + lane / 16)])));
      for (int j = 0; j < 4; j += 2)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(y[j][0]), "=r"(y[j][1]), "=r"(y[j + 1][0]), "=r"(y[j + 1][1]) : "r"(to_shared(&bs[at(j * 8 + lane % 8 + lane / 16 * 8, kk * 2 + lane / 8 % 2)])));
      for (int j = 0; j < 4; j++)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+f"(acc[j][0]), "+f"(acc[j][1]), "+f"(acc[j][2]), "+f"(acc[j][3]) : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[j][0]), "r"(y[j][1]));
    }
    __syncthreads();
  }
  for (int j = 0; j < 4; j++) {
    float* to = c + (warp * 16 + lane / 4) * 32 + j * 8 + lane % 4 * 2;
    *(float2*)to = make_float2(acc[j][0], acc[j][1]);
    *(float2*)(to + 8 * 32) = make_float2(acc[j][2], acc[j][3]);
  }
}

template <int PITCH> __global__ void stmatrix_out(const uint4* in, uint4* out) {
  __shared__ __align__(128) half s[64 * PITCH];
  int t = threadIdx.x, lane = t % 32, warp = t / 32;
  uint4 v = in[t];
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(to_shared(&s[(warp * 16 + lane % 16) * PITCH + lane / 16 * 8])), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w));
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1,%2};" ::"r"(to_shared(&s[(warp * 16 + lane % 16) * PITCH + 16])), "r"(v.x), "r"(v.y));
  __syncthreads();
  for (int i = t; i < 64 * 3; i += blockDim.x) out[i] = *(uint4*)&s[i / 3 * PITCH + i % 3 * 8];
}

__global__ void group_partition(const int* in, int* out) {
  __shared__ int s[256], sums[32];
  cg::thread_block block = cg::this_thread_block();
  auto tile = cg::tiled_partition<8>(block);
  int v = in[block.thread_rank()];
  s[tile.thread_rank() * tile.meta_group_size() + tile.meta_group_rank()] = v;
  int sum = cg::reduce(tile, v, cg::plus<int>());
  if (tile.thread_rank() == 0) sums[tile.meta_group_rank()] = sum;
  block.sync();
  int next = tile.shfl((int)(block.thread_rank() * 3), 5);
  out[block.thread_rank()] = s[next & 255] + sums[block.thread_rank() / 8];
}

__global__ void carved(const float* in, double* out, int rows) {
  extern __shared__ __align__(16) unsigned char raw[];
  float* a = (float*)raw;
  double* b = (double*)(a + rows * 33);
  short* c = (short*)(b + 64);
  int t = threadIdx.x;
  for (int r = 0; r < rows; r++) a[r * 33 + t % 32] = in[r * 32 + t % 32];
  b[t * 2 & 63] = t;
  c[t] = (short)t;
  ((unsigned char*)(c + 128))[t * 4] = (unsigned char)t;
  __syncthreads();
  out[t] = a[(t % rows) * 33 + t / rows % 32] + b[t & 63] + c[t ^ 1] + ((unsigned char*)(c + 128))[t];
}

__global__ void __launch_bounds__(256) stencil(const float* in, float* out, int width, int height) {
  __shared__ float s[18][18];
  int x0 = blockIdx.x * 16 - 1, y0 = blockIdx.y * 16 - 1;
  for (int i = threadIdx.y * 16 + threadIdx.x; i < 18 * 18; i += 256) {
    int x = min(max(x0 + i % 18, 0), width - 1), y = min(max(y0 + i / 18, 0), height - 1);
    s[i / 18][i % 18] = in[y * width + x];
  }
  __syncthreads();
  int x = x0 + 1 + threadIdx.x, y = y0 + 1 + threadIdx.y;
  if (x >= width || y >= height) return;
  float sum = 0;
  for (int dy = 0; dy < 3; dy++)
    for (int dx = 0; dx < 3; dx++) sum += s[threadIdx.y + dy][threadIdx.x + dx];
  out[y * width + x] = sum;
}

__device__ __noinline__ int reversed(int x, int bits) {
  return bits == 0 ? 0 : (x & 1) << (bits - 1) | reversed(x >> 1, bits - 1);
}
__device__ __noinline__ unsigned fibonacci(unsigned n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__global__ void recursive(float* out, int bits) {
  __shared__ float s[1024];
  s[reversed(threadIdx.x, bits) & 1023] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = s[fibonacci(threadIdx.x % 9) & 1023];
}

__device__ __noinline__ int choose(int mode, int t, int depth) {
  switch (mode) {
    case 0: return t;
    case 1: return t * 2;
    case 2: return t ^ (t >> 5);
    case 3: return t * 33;
    case 4: return depth ? choose(2, t + 1, depth - 1) : t * 5;
    case 5: return t * 7 + 3;
    case 6: return depth ? choose(4, t * 3, depth - 1) : t + 9;
    default: return t * 4;
  }
}
__global__ void switch_recursive(float* out, int mode, int depth) {
  __shared__ float s[1024];
  s[choose(mode, threadIdx.x, depth) & 1023] = 1;
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];
}

__global__ void switch_lanes(float* out, int n) {
  __shared__ volatile float s[4096];
  int t = threadIdx.x;
  for (int i = 0; i < n; i++) {
    switch ((t + i) % 8) {
      case 0: s[t] = 1; break;
      case 1: s[t * 2] = s[t] + 2; break;
      case 2: s[t * 4 + i] = 3; break;
      case 3: s[t * 32 & 4095] = 4;
      case 4: s[t * 8 & 4095] = 5; break;
      case 5: s[t ^ 7] = s[i]; break;
      case 6: s[(t * 3) & 4095] = 5; break;
      default: s[(t * 16) & 4095] = 5; break;
    }
  }
  __syncthreads();
  out[t] = s[t];
}

__device__ int plain_index(int x) { return x; }
__device__ int double_index(int x) { return 2 * x; }
__device__ int swizzled_index(int x) { return x ^ x >> 5; }
__device__ int (*const index_functions[])(int) = {plain_index, double_index, swizzled_index};
__global__ void function_pointers(float* out, int which) {
  __shared__ float s[1024];
  s[index_functions[which](threadIdx.x) & 1023] = 1;
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];
}

struct Base { __device__ virtual int index(int x) const = 0; };
struct Twice : Base { __device__ int index(int x) const override { return 2 * x; } };
struct Thrice : Base { __device__ int index(int x) const override { return 3 * x; } };
__global__ void virtual_calls(float* out, int which) {
  __shared__ float s[1024];
  Twice twice; Thrice thrice;
  const Base* base = which ? (const Base*)&twice : &thrice;
  s[base->index(threadIdx.x)] = 1;
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];
}

__global__ void prints(float* out, int n) {
  __shared__ float s[1024];
  assert(threadIdx.x < 1024);
  s[threadIdx.x * 2 & 1023] = 1;
  if (n < 0) printf("negative: %d\n", n);
  __syncthreads();
  assert(n >= 0);
  out[threadIdx.x] = s[threadIdx.x];
}

__global__ void wide_division(double* out, long long a, unsigned long long b) {
  __shared__ double s[1024];
  long long t = (long long)threadIdx.x * 1000000007LL;
  s[(int)(t / a) & 1023] = 1;
  s[(int)((unsigned long long)t % b) & 1023] = 2;
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];
}

__global__ void double_index_math(double* out, int n) {
  __shared__ double s[1024];
  s[(int)((double)threadIdx.x * n / 3.0 + 0.5) & 1023] = 1;
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];
}

__global__ void triangle(float* out, int n) {
  __shared__ float s[1024];
  int t = threadIdx.x;
  int row = (int)((sqrtf(8.f * t + 1.f) - 1.f) * 0.5f), col = t - row * (row + 1) / 2;
  s[(row * 32 + col) & 1023] = n;
  __syncthreads();
  out[t] = s[t];
}

__global__ void matched(int* out, int groups) {
  __shared__ int count[32], place[128];
  int t = threadIdx.x, key = t % groups;
  if (t < 32) count[t] = 0;
  __syncthreads();
  unsigned peers = __match_any_sync(~0u, key);
  int leader = __ffs(peers) - 1, rank = __popc(peers & ((1u << t % 32) - 1));
  if (rank == 0) atomicAdd(&count[key], __popc(peers));
  place[leader * 4 + rank & 127] = t;
  int top = __reduce_max_sync(~0u, (t * 7) & 63), mask = __reduce_or_sync(~0u, 1u << (t & 3));
  __syncthreads();
  out[t] = count[top & 31] + place[(t * mask) & 127];
  int same;
  __match_all_sync(~0u, t / 32, &same);
  if (same) place[t] = 1;
}

__global__ void atomics(int* out, float* fout, int n) {
  __shared__ int s[512];
  __shared__ float f[64];
  __shared__ unsigned long long w[64];
  int t = threadIdx.x;
  atomicAdd(&s[t / 2], 1);
  atomicMax(&s[t * 2 & 511], t);
  atomicExch(&s[t], n);
  atomicCAS(&s[t * 4 & 511], 0, t);
  int old = atomicInc((unsigned*)&s[t % 8], 100);
  atomicAdd(&f[t & 63], 1.f);
  atomicAdd(&w[t & 63], 1ull);
  atomicMin(&w[t & 31], 5ull);
  __syncthreads();
  atomicAdd(out + t / 4, s[t]);
  atomicAdd(fout + t, f[t & 63]);
  out[512 + t] = atomicOr(out + 1024 + t, old) + (int)w[t & 63];
}

__device__ __noinline__ void store_through(float* p, int stride) {
  for (int i = 0; i < 4; i++) p[(threadIdx.x + 32 * i) * stride & 1023] = i;
}
__global__ void generic_store(float* out, int stride) {
  __shared__ float s[1024];
  store_through(s, stride);
  __syncthreads();
  store_through(out, 1);
  out[threadIdx.x] = s[threadIdx.x];
}

__global__ void local_arrays(float* out, int n) {
  __shared__ float s[1024];
  int order[8];
  for (int i = 0; i < 8; i++) order[i] = (i * 5 + (int)threadIdx.x) & 7;
  for (int i = 0; i < n; i++) s[(threadIdx.x * 8 + order[(i + threadIdx.x) & 7]) & 1023] += i;
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];
}

__global__ void producer_consumer(const float* in, float* out, int n) {
  __shared__ float s[2][128];
  int t = threadIdx.x;
  if (t < 128) {
    for (int i = 0; i < n; i++) {
      if (i >= 2) asm volatile("bar.sync %0, 256;" ::"r"(3 + (i & 1)));
      s[i & 1][t] = in[i * 128 + t];
      asm volatile("bar.arrive %0, 256;" ::"r"(1 + (i & 1)));
    }
  } else {
    float sum = 0;
    for (int i = 0; i < n; i++) {
      asm volatile("bar.sync %0, 256;" ::"r"(1 + (i & 1)));
      sum += s[i & 1][(t * 2) & 127];
      if (i + 2 < n) asm volatile("bar.arrive %0, 256;" ::"r"(3 + (i & 1)));
    }
    out[t - 128] = sum;
  }
}

__global__ void divergent(float* out, int n) {
  __shared__ volatile float s[2048];
  int t = threadIdx.x;
  for (int i = 0; i <= t % 7; i++) {
    if (i == 3 && t % 2) continue;
    if (i + t > n) break;
    s[t * 3 + i * 17 & 2047] = i;
    for (int j = t % 3; j < 4; j++) s[(j * 64 + t) & 2047] = s[(t * j) & 2047];
  }
  if (t < 20) s[t * 2] = 1;
  else if (t < 70) { if (t & 1) s[t * 4] = 2; else s[t] = 3; }
  __syncthreads();
  out[t] = s[t];
}

__global__ void clamped(const float* in, float* out, int lo, int hi) {
  __shared__ float s[512];
  int t = threadIdx.x;
  s[max(min(t * 3 - 20, hi), lo)] = in[max(max(t, lo), hi)];
  s[min(min(t * 2, hi), 300 - t)] = in[min(max(t - 5, 0), 100)];
  __syncthreads();
  out[t] = s[t];
}

__global__ void fft_exchange(float2* data) {
  __shared__ float2 s[512];
  float2 v[4];
  int t = threadIdx.x;
  for (int i = 0; i < 4; i++) v[i] = data[t + 128 * i];
  for (int stride = 128; stride >= 2; stride /= 4) {
    int base = t / stride * stride * 4 + t % stride;
    for (int i = 0; i < 4; i++) s[base + i * stride] = v[i];
    __syncthreads();
    int from = t / (stride / 4 > 0 ? stride / 4 : 1) * stride % 512 + t % (stride / 4 > 0 ? stride / 4 : 1);
    for (int i = 0; i < 4; i++) v[i] = s[(from + i * (stride / 4)) & 511];
    __syncthreads();
  }
  for (int i = 0; i < 4; i++) data[t * 4 + i] = v[i];
}

__global__ void wmma_tile(const half* a, const half* b, float* c, int k) {
  using namespace nvcuda::wmma;
  __shared__ __align__(32) half as[16 * 24], bs[16 * 24];
  __shared__ __align__(32) float cs[16 * 20];
  fragment<matrix_a, 16, 16, 16, half, row_major> fa;
  fragment<matrix_b, 16, 16, 16, half, col_major> fb;
  fragment<accumulator, 16, 16, 16, float> fc;
  fill_fragment(fc, 0.f);
  for (int k0 = 0; k0 < k; k0 += 16) {
    for (int i = threadIdx.x; i < 256; i += 32) { as[i / 16 * 24 + i % 16] = a[i / 16 * k + k0 + i % 16]; bs[i / 16 * 24 + i % 16] = b[i / 16 * k + k0 + i % 16]; }
    __syncwarp();
    load_matrix_sync(fa, as, 24);
    load_matrix_sync(fb, bs, 24);
    mma_sync(fc, fa, fb, fc);
    __syncwarp();
  }
  store_matrix_sync(cs, fc, 20, mem_row_major);
  __syncwarp();
  for (int i = threadIdx.x; i < 256; i += 32) c[i] = cs[i / 16 * 20 + i % 16];
}

__global__ void __cluster_dims__(2, 1, 1) cluster_exchange(const float* in, float* out) {
  __shared__ float s[256];
  cg::cluster_group cluster = cg::this_cluster();
  int t = threadIdx.x;
  float* other = cluster.map_shared_rank(s, cluster.block_rank() ^ 1);
  s[t] = in[t];
  cluster.sync();
  other[(t * 2) & 127] = 1;
  atomicAdd(other + 128 + t / 2, 1.f);
  cluster.sync();
  out[blockIdx.x * 128 + t] = s[t] + other[t];
  cluster.sync();
}

__global__ void bulk_copy(const float* in, float* out) {
  __shared__ __align__(128) float s[256];
  __shared__ __align__(8) unsigned long long bar;
  int t = threadIdx.x;
  if (t == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(to_shared(&bar)));
    asm volatile("fence.mbarrier_init.release.cluster;");
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 1024;" ::"r"(to_shared(&bar)));
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 1024, [%2];" ::"r"(to_shared(s)), "l"(in), "r"(to_shared(&bar)));
  }
  __syncthreads();
  asm volatile("{\n.reg .pred p;\nWAIT:\nmbarrier.try_wait.parity.shared.b64 p, [%0], 0;\n@!p bra WAIT;\n}" ::"r"(to_shared(&bar)));
  out[t] = s[t * 2 & 255];
}

__global__ void early_exit(const float* in, float* out, int n) {
  __shared__ float s[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  s[threadIdx.x] = in[i];
  __syncwarp(__activemask());
  if (in[i] > 0) s[threadIdx.x ^ 1] = 2;
  out[i] = s[threadIdx.x / 2 * 3 & 255];
}

__global__ void half_words(const half2* in, half2* out, int n) {
  __shared__ half h[64][66];
  __shared__ half2 h2[64 * 33];
  __shared__ char bytes[2048];
  int t = threadIdx.x;
  for (int r = t / 32; r < n; r += blockDim.x / 32) {
    *(half2*)&h[r][t % 32 * 2] = in[r * 32 + t % 32];
    h2[r * 33 + t % 32] = in[r * 32 + t % 32];
    bytes[(t % 32) * 33 + r] = (char)r;
  }
  __syncthreads();
  for (int r = t / 32; r < n; r += blockDim.x / 32)
    out[r * 32 + t % 32] = __hadd2(__halves2half2(h[t % 32][r], h[t % 32 + 32][r]), __hadd2(h2[t % 32 * 33 + r], __float2half2_rn(bytes[t % 32 + r * 32])));
}

struct Shape { int rows, cols, pitch; float scale; };
__global__ void by_value(const float* in, float* out, Shape shape) {
  extern __shared__ float s[];
  for (int i = threadIdx.x; i < shape.rows * shape.cols; i += blockDim.x)
    s[i / shape.cols * shape.pitch + i % shape.cols] = in[i] * shape.scale;
  __syncthreads();
  for (int i = threadIdx.x; i < shape.rows * shape.cols; i += blockDim.x)
    out[i] = s[i % shape.rows * shape.pitch + i / shape.rows];
}

__global__ void swizzled_grid(const float4* a, float* out, int tiles_m, int tiles_n) {
  __shared__ float4 s[8][33];
  int group = 4 * tiles_n, id = blockIdx.x / group, first = id * 4, size = min(tiles_m - first, 4);
  int m = first + blockIdx.x % group % size, n = blockIdx.x % group / size;
  s[threadIdx.y][threadIdx.x] = a[(m * 8 + threadIdx.y) * 32 * tiles_n + n * 32 + threadIdx.x];
  __syncthreads();
  float4 v = s[threadIdx.x % 8][threadIdx.y * 4 + threadIdx.x / 8];
  out[(m * tiles_n + n) * 256 + threadIdx.y * 32 + threadIdx.x] = v.x + v.w;
}

template __global__ void scan_blelloch<false>(const int*, int*, int);
template __global__ void scan_blelloch<true>(const int*, int*, int);
template __global__ void gemm_async<2>(const float*, const float*, float*, int, int, int);
template __global__ void gemm_async<3>(const float*, const float*, float*, int, int, int);
template __global__ void mma_ldmatrix<false>(const half*, const half*, float*, int);
template __global__ void mma_ldmatrix<true>(const half*, const half*, float*, int);
template __global__ void stmatrix_out<64>(const uint4*, uint4*);
template __global__ void stmatrix_out<72>(const uint4*, uint4*);
