// More kinds of kernels: more_kinds_h200.jsonl has the counts, taken like those of kinds.cu.
#include <cooperative_groups.h>
#include <cuda_fp16.h>
#include <stdio.h>
namespace cg = cooperative_groups;
__device__ __forceinline__ unsigned sm_addr(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

__global__ void softmax(const float* in, float* out, int n) {
  __shared__ float red[32];
  extern __shared__ float row[];
  const float* x = in + blockIdx.x * n;
  float m = -1e30f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) { row[i] = x[i]; m = fmaxf(m, x[i]); }
  for (int o = 16; o; o >>= 1) m = fmaxf(m, __shfl_xor_sync(~0u, m, o));
  if (threadIdx.x % 32 == 0) red[threadIdx.x / 32] = m;
  __syncthreads();
  m = red[threadIdx.x % 32 < blockDim.x / 32 ? threadIdx.x % 32 : 0];
  float s = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) { float e = __expf(row[i] - m); row[i] = e; s += e; }
  for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(~0u, s, o);
  __syncthreads();
  if (threadIdx.x % 32 == 0) red[threadIdx.x / 32] = s;
  __syncthreads();
  s = 0;
  for (int i = 0; i < blockDim.x / 32; i++) s += red[i];
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[blockIdx.x * n + i] = row[i] / s;
}
template <int BLOCK> __global__ void reduce6(const int* in, int* out, unsigned n) {
  __shared__ volatile int s[BLOCK];
  unsigned t = threadIdx.x, i = blockIdx.x * BLOCK * 2 + t, grid = BLOCK * 2 * gridDim.x;
  int sum = 0;
  while (i < n) { sum += in[i]; if (i + BLOCK < n) sum += in[i + BLOCK]; i += grid; }
  s[t] = sum;
  __syncthreads();
  if (BLOCK >= 512) { if (t < 256) s[t] += s[t + 256]; __syncthreads(); }
  if (BLOCK >= 256) { if (t < 128) s[t] += s[t + 128]; __syncthreads(); }
  if (BLOCK >= 128) { if (t < 64) s[t] += s[t + 64]; __syncthreads(); }
  if (t < 32) { s[t] += s[t + 32]; s[t] += s[t + 16]; s[t] += s[t + 8]; s[t] += s[t + 4]; s[t] += s[t + 2]; s[t] += s[t + 1]; }
  if (t == 0) out[blockIdx.x] = s[0];
}
__constant__ float filter[25];
__global__ void conv5(const float* in, float* out, int w, int h) {
  __shared__ float s[20][20];
  for (int i = threadIdx.y * 16 + threadIdx.x; i < 400; i += 256) {
    int x = blockIdx.x * 16 + i % 20 - 2, y = blockIdx.y * 16 + i / 20 - 2;
    s[i / 20][i % 20] = x >= 0 && x < w && y >= 0 && y < h ? in[y * w + x] : 0;
  }
  __syncthreads();
  float a = 0;
  for (int i = 0; i < 25; i++) a += filter[i] * s[threadIdx.y + i / 5][threadIdx.x + i % 5];
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  if (x < w && y < h) out[y * w + x] = a;
}
__global__ void pipeline(const half* a, float* c, int k) {
  __shared__ __align__(128) half s[3][64 * 40];
  int t = threadIdx.x, lane = t % 32, warp = t / 32;
  float acc[4] = {};
  auto load = [&](int st, int k0) {
    for (int i = 0; i < 2; i++) {
      int r = (t + i * 128) / 4, q = (t + i * 128) % 4 * 8;
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(sm_addr(&s[st][r * 40 + q])), "l"(a + r * k + k0 + q));
    }
    asm volatile("cp.async.commit_group;");
  };
  load(0, 0); load(1, 32);
  for (int i = 0; i < k / 32; i++) {
    asm volatile("cp.async.wait_group 1;");
    __syncthreads();
    if (i + 2 < k / 32) load((i + 2) % 3, (i + 2) * 32); else asm volatile("cp.async.commit_group;");
    for (int kk = 0; kk < 2; kk++) {
      unsigned x[4];
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(sm_addr(&s[i % 3][(warp * 16 + lane % 16) * 40 + kk * 16 + lane / 16 * 8])));
      asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%4,%5}, {%0,%1,%2,%3};" : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3]) : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]));
    }
  }
  for (int i = 0; i < 4; i++) c[t * 4 + i] = acc[i];
}
__global__ void float3_rows(const float3* in, float3* out) {
  __shared__ float3 s[256];
  s[threadIdx.x] = in[blockIdx.x * 256 + threadIdx.x];
  __syncthreads();
  out[blockIdx.x * 256 + threadIdx.x] = s[(threadIdx.x * 5) & 255];
}
__global__ void triangular(float* a, int n) {
  __shared__ float s[48][49];
  for (int j = 0; j < n; j++) if (threadIdx.x < n) s[j][threadIdx.x] = a[j * n + threadIdx.x];
  __syncthreads();
  for (int k = 0; k < n; k++) {
    for (int i = k + 1 + threadIdx.x / 16; i < n; i += blockDim.x / 16) {
      float f = s[i][k] / s[k][k];
      for (int j = k + threadIdx.x % 16; j < n; j += 16) s[i][j] -= f * s[k][j];
    }
    __syncthreads();
  }
  for (int j = 0; j < n; j++) if (threadIdx.x < n) a[j * n + threadIdx.x] = s[j][threadIdx.x];
}
__global__ void counted(const int* in, int* out, int n) {
  __shared__ int warps[32];
  int t = threadIdx.x, v = t < n ? in[t] : 1;
  unsigned vote = __ballot_sync(~0u, v > 0);
  int many = __syncthreads_count(t % 3 == 0), some = __syncthreads_or(t == n);
  if (t % 32 == 0) warps[t / 32] = __popc(vote) + some;
  __syncthreads();
  out[t] = warps[(many + t) & 3];
  warps[t & 31] = 5;
}
__global__ void coalesced(int* out, int n) {
  __shared__ int s[256];
  int t = threadIdx.x;
  s[t] = 0;
  __syncthreads();
  if (t % 3 == 1 && t < n) {
    auto g = cg::coalesced_threads();
    int r = g.thread_rank();
    s[r * 4 + t / 32] = g.size();
    g.sync();
    s[128 + r] = g.shfl(t, 0);
  }
  __syncthreads();
  out[t] = s[t];
}
__global__ void ring(const float* in, float* out, int taps, int n) {
  __shared__ float r[8][128];
  for (int i = 0; i < n; i++) {
    r[i % taps][threadIdx.x] = in[i * 128 + threadIdx.x];
    float a = 0;
    for (int k = 0; k < taps; k++) a += r[(i + taps - k) % taps][(threadIdx.x + k) & 127];
    out[i * 128 + threadIdx.x] = a;
    __syncthreads();
  }
}
__global__ void long_index(const double* in, double* out, unsigned long long n, long long stride) {
  __shared__ double s[32][33];
  for (unsigned long long i = blockIdx.x * 256ull + threadIdx.x; i < n; i += gridDim.x * 256ull) {
    long long row = (long long)i / stride, col = (long long)i % stride;
    s[row & 31][col & 31] = in[i];
    __syncthreads();
    out[col * (n / stride) + row] = s[threadIdx.x / 8 & 31][threadIdx.x & 31];
    __syncthreads();
  }
}
__global__ void bytes_mixed(const uchar4* in, unsigned char* out, int pitch) {
  __shared__ unsigned char s[64 * 68];
  __shared__ short h[64][34];
  int t = threadIdx.x;
  for (int r = t / 16; r < 64; r += 8) *(uchar4*)&s[r * pitch + t % 16 * 4] = in[r * 16 + t % 16];
  __syncthreads();
  for (int r = t / 32; r < 32; r += 4) { h[r][t % 32] = s[t % 32 * pitch + r]; h[r + 32][t % 32] = s[(t % 32 + 32) * pitch + r]; }
  __syncthreads();
  for (int r = t / 32; r < 64; r += 4) out[r * 32 + t % 32] = (unsigned char)h[r][31 - t % 32];
}
__global__ void warp_roles(float* out, int n) {
  __shared__ float4 s[4][64];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  switch (warp) {
    case 0: for (int i = 0; i < n; i++) s[0][lane * 2 & 63] = make_float4(1, 2, 3, i); break;
    case 1: for (int i = 0; i < n; i += 2) s[1][(lane + i) & 63].x = 4; break;
    case 2: if (lane < 16) s[2][lane * 3] = s[1][lane]; else s[2][lane].y = s[0][63 - lane].w; break;
    default: s[3][lane ^ n & 63].z += 1;
  }
  __syncthreads();
  float4 v = s[lane & 3][(threadIdx.x * 9) & 63];
  out[threadIdx.x] = v.x + v.y + v.z + v.w;
}
__global__ void shuffled_transpose(const float* in, float* out, float scale) {
  __shared__ float s[8][33];
  int lane = threadIdx.x;
  float v[8];
  for (int i = 0; i < 8; i++) v[i] = in[i * 32 + lane];
  for (int i = 0; i < 8; i++) { float u = __shfl_xor_sync(~0u, v[i], 1 << (i % 5)); s[(i + lane) & 7][lane] = (lane >> (i % 5) & 1) ? u : v[i] * scale; }
  __syncwarp();
  for (int i = 0; i < 8; i++) out[lane * 8 + i] = s[i][lane];
}
__global__ void block_scan_mixed(int* data, int n) {
  extern __shared__ int t[];
  int tid = threadIdx.x, ping = 0;
  t[tid] = tid > 0 ? data[tid - 1] : 0;
  __syncthreads();
  for (int o = 1; o < n; o *= 2) {
    ping = 1 - ping;
    if (tid >= o) t[ping * n + tid] = t[(1 - ping) * n + tid] + t[(1 - ping) * n + tid - o];
    else t[ping * n + tid] = t[(1 - ping) * n + tid];
    __syncthreads();
  }
  data[tid] = t[ping * n + tid];
}
__global__ void async_mixed(const float* in, float* out, int rows, int pitch) {
  extern __shared__ __align__(16) float s[];
  int t = threadIdx.x;
  for (int r = t / 32; r < rows; r += 4) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(sm_addr(s + r * pitch + t % 32)), "l"(in + r * 37 + t % 32));
    if (t % 32 < 16) asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(sm_addr(s + (rows + r) * 36 + t % 16 * 2)), "l"(in + r * 64 + t % 16 * 2));
    if (t % 32 < 8) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(sm_addr(s + (2 * rows + r) * 36 + t % 8 * 4)), "l"(in + r * 64 + t % 8 * 4));
  }
  asm volatile("cp.async.wait_all;");
  __syncthreads();
  for (int r = 0; r < rows; r++) out[r * 128 + t] = s[t % 32 * 36 + r];
}
__global__ void pred_and_math(const float* in, float* out, int a, unsigned b, float f) {
  __shared__ float s[1024];
  int t = threadIdx.x, i = t;
  for (int k = 0; k < 3; k++) i = (i * a + (t >> k)) % 1021;
  s[i & 1023] = in[t];
  unsigned u = t * b; u ^= u << 13; u ^= u >> 17; u ^= u << 5;
  s[u % 1000] = in[t];
  s[__funnelshift_l(u, t, 7) & 1023] += 1;
  s[(__clz(u) * 31 + __ffs(u)) & 1023] = 2;
  s[__vadd2(u, t) & 511] = 3;
  s[min(abs(t - 50) * 7, 900)] = 3;
  s[(unsigned short)(t * 777) & 1023] = __half2float(__float2half(f));
  s[(int)(t * 0.125f) * 3 + (t & 7)] = 4;
  s[__dp4a((int)u, 0x01010101, t) & 1023] = 5;
  __syncthreads();
  out[t] = s[t];
}

template __global__ void reduce6<256>(const int*, int*, unsigned);
template __global__ void reduce6<128>(const int*, int*, unsigned);
