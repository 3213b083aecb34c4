// Each kernel stores to shared memory at an address that test_opcodes.py computes in Python from the thread index.
#define KERNEL(name, expression)                                                    \
  __global__ void name(int* out, int a, int b, unsigned c, long long w) {           \
    __shared__ int s[4096];                                                         \
    const int t = threadIdx.x;                                                      \
    const unsigned u = threadIdx.x;                                                 \
    s[(unsigned)(expression) & 4095] = t;                                           \
    __syncthreads();                                                                \
    out[t] = s[t];                                                                  \
  }
KERNEL(quotient, t * 1000 / a)
KERNEL(remainder, (t * 77 + 5) % a)
KERNEL(unsigned_quotient, (u * 4000000u) / c)
KERNEL(negative_quotient, (t - 40) * 1000 / a)
KERNEL(by_constant, t * 1001 / 7 + t * 33 % 11)
KERNEL(negative_by_constant, (t - 64) * 9999 / 10)
KERNEL(shifts, (u << (t & 15)) ^ (u * 0x9E3779B9u >> 20) ^ ((t - 50) >> 2))
KERNEL(variable_shift, 0xABCDEF01u >> t)
KERNEL(wide_shift, (unsigned)(((long long)t * 0x123456789LL) >> (t & 31)))
KERNEL(wide_product, (unsigned)(((long long)(t - 30) * w) >> 33))
KERNEL(high_product, __umulhi(u * 0x9E3779B9u, 0xDEADBEEFu) + __mulhi(t - 20, 0x7654321))
KERNEL(select_minimum, min(max(t - 10, a), b) * 3)
KERNEL(absolute, abs(t - 37) * 5)
KERNEL(population, __popc(u * 0x9E3779B9u) * 64 + t)
KERNEL(reversed, __brev(u) >> 20)
KERNEL(leading, (31 - __clz(u * u + 1)) * 128 + t)
KERNEL(bytes, __byte_perm(u * 0x01020304u, u + 7, 0x5140))
KERNEL(sign_extended, (int)(signed char)(t * 5) + 2000)
KERNEL(sixteen_bits, (int)(short)(t * 1111) / 16 + 2048)
KERNEL(logic, (u & 0x55) | ((u ^ 0x2A) & ~c))
KERNEL(three_way, (t & a) ^ (t | b) ^ ~u)
KERNEL(wide_compare, (long long)t * 0x40000000LL > w ? t * 2 : t * 3)
KERNEL(wide_modulo, (unsigned)((unsigned long long)(t * 12345) % 1021))
KERNEL(rounded, (int)(t * 0.37f + 1.5f))
KERNEL(ballot, __popc(__ballot_sync(~0u, t % 3 == 0) & ((1u << (t & 31)) - 1)) * 32 + (t & 31))
KERNEL(shuffled, __shfl_xor_sync(~0u, t * 7, 5) + __shfl_down_sync(~0u, t, 3) + __shfl_sync(~0u, t, 9, 16))
KERNEL(voted, (__all_sync(~0u, t < 40) ? 100 : 200) + (__any_sync(~0u, t == 70) ? 7 : 3) * t)
KERNEL(of_three, min(min(t * 3, a * 4), 150 - t) + max(max(t, a), b))
KERNEL(long_quotient, (unsigned)((t * 1000000007LL - 40000000000LL) / (w >> 3)))
KERNEL(long_remainder, (unsigned)((unsigned long long)(t * 1000000007LL) % (unsigned long long)(w / 77)))
KERNEL(root, (int)((sqrtf(8.f * t + 1.f) - 1.f) * 0.5f) * 32 + t)
KERNEL(in_doubles, (int)((double)t * a + 0.5 * t - 7.25) + 64)
KERNEL(rounded_down, (int)floorf(t * 0.7f - 9.f) + (int)ceilf(t * 0.3f) + __float2int_rn(t * 0.5f) + 64)
KERNEL(matched, __popc(__match_any_sync(~0u, t % a)) * 32 + __ffs(__match_any_sync(~0u, t / 3)))
KERNEL(reduced, __reduce_max_sync(~0u, (t * 7) % a) * 32 + __reduce_add_sync(~0u, u & 3) + t)
KERNEL(lane_masks, ([] { unsigned m; asm volatile("mov.u32 %0, %%lanemask_lt;" : "=r"(m)); return m; }()) >> 3)

__global__ void uniform_data(const int* data, int* out) {
  __shared__ __align__(1024) int s[4096];
  const int row = data[0] & 31;
  s[row * 32 + threadIdx.x] = 1;          // a row that only the data tells: 1-way all the same
  s[row * 32 + threadIdx.x * 2] = 2;      // 2-way
  s[(data[1] & 1) + threadIdx.x] = 3;     // a shift by words
  ((char*)s)[(data[2] & 7) + threadIdx.x * 4] = 4;  // a shift by bytes: words are not known
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];
}

__global__ void wide_loads(float4* out) {
  __shared__ __align__(16) float4 s[1024];
  const int t = threadIdx.x;
  float4 a = ((volatile float4*)0 == 0) ? s[t & 1 ? 32 : 0] : s[0];
  out[t] = a;
}

__global__ void generic_pointer(float* global, int choose) {
  __shared__ float s[2048];
  float* p = choose ? s : global;
  p[threadIdx.x * 2] = 1;
  __syncthreads();
  global[threadIdx.x] = s[threadIdx.x];
}

struct Arguments {
  float* from;
  float* to;
  int rows, pitch;
};
__global__ void structure(Arguments x) {
  __shared__ float s[1024];
  for (int i = 0; i < x.rows; i++) s[threadIdx.x ^ (i & 3)] += x.from[i * x.pitch + threadIdx.x];
  __syncthreads();
  x.to[threadIdx.x] = s[threadIdx.x ^ 1];
}

__constant__ int table[8] = {0, 5, 2, 7, 4, 1, 6, 3};
__constant__ int filled_by_host[8];
__global__ void tables(int* out) {
  __shared__ int s[1024];
  s[table[threadIdx.x & 7] * 32 + (threadIdx.x >> 3)] = 1;
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];
}

extern "C" __global__ void by_block(const float* from, float* to, int n) {
  __shared__ float s[256];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  s[threadIdx.x] = from[i];
  __syncwarp();
  to[i] = s[threadIdx.x ^ 1];
}

__global__ void spilled(int* out, int n) {
  __shared__ int s[2048];
  int places[40];
  for (int i = 0; i < 40; i++) places[i] = (threadIdx.x * i * 3) & 2047;
  for (int k = 0; k < n; k++)
    for (int i = 0; i < 40; i++) s[places[(i * k) % 40]] += i;
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];
}
