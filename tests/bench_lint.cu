// What `bench_lint.py` measures: 200 lines as they stand in many projects, with conflicts and without.

#define TILE 32
#define ROWS 8
#define WARP 32

// A transpose through shared memory: the loads walk down a column.
// bankcheck: block=32,8
__global__ void transpose_bad(float* out, const float* in, int width, int height) {
    __shared__ float tile[TILE][TILE];
    int x = blockIdx.x * TILE + threadIdx.x;
    int y = blockIdx.y * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS) {
        if (x < width && y + j < height)
            tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
    }
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x;
    y = blockIdx.x * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS) {
        if (x < height && y + j < width)
            out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
    }
}

// bankcheck: block=32,8
__global__ void transpose_padded(float* out, const float* in, int width, int height) {
    __shared__ float tile[TILE][TILE + 1];
    int x = blockIdx.x * TILE + threadIdx.x;
    int y = blockIdx.y * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS)
        tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x;
    y = blockIdx.x * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS)
        out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
}

// A matrix product: two tiles, eight results for each thread.
template <int BM, int BN, int BK>
__global__ void sgemm(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float As[BM * BK];
    __shared__ float Bs[BK * BN];
    const int column = threadIdx.x % BN;
    const int row = threadIdx.x / BN;
    const int inner_a = threadIdx.x % BK, outer_a = threadIdx.x / BK;
    const int inner_b = threadIdx.x % BN, outer_b = threadIdx.x / BN;
    A += blockIdx.y * BM * K;
    B += blockIdx.x * BN;
    C += blockIdx.y * BM * N + blockIdx.x * BN;
    float results[8] = {0.0f};
    for (int start = 0; start < K; start += BK) {
        As[outer_a * BK + inner_a] = A[outer_a * K + inner_a];
        Bs[outer_b * BN + inner_b] = B[outer_b * N + inner_b];
        __syncthreads();
        A += BK;
        B += BK * N;
        for (int k = 0; k < BK; ++k) {
            float b = Bs[k * BN + column];
            for (int i = 0; i < 8; ++i)
                results[i] += As[(row * 8 + i) * BK + k] * b;
        }
        __syncthreads();
    }
    for (int i = 0; i < 8; ++i)
        C[(row * 8 + i) * N + column] = results[i];
}

template __global__ void sgemm<64, 64, 8>(const float*, const float*, float*, int, int, int);

void multiply(const float* A, const float* B, float* C, int M, int N, int K) {
    dim3 grid(N / 64, M / 64);
    sgemm<64, 64, 8><<<grid, 512>>>(A, B, C, M, N, K);
}

// The same with a transposed tile and vector loads.
// bankcheck: block=16,16
__global__ void sgemm_vector(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ __align__(16) float As[8][128];
    __shared__ __align__(16) float Bs[8][128];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int tid = ty * 16 + tx;
    const int load_a_row = tid >> 1, load_a_column = (tid & 1) << 2;
    const int load_b_row = tid >> 5, load_b_column = (tid & 31) << 2;
    float a[8], b[8], c[8][8] = {{0.0f}};
    for (int bk = 0; bk < (K + 7) / 8; ++bk) {
        float4 from_a = *(const float4*)&A[(blockIdx.y * 128 + load_a_row) * K + bk * 8 + load_a_column];
        float4 from_b = *(const float4*)&B[(bk * 8 + load_b_row) * N + blockIdx.x * 128 + load_b_column];
        As[load_a_column][load_a_row] = from_a.x;
        As[load_a_column + 1][load_a_row] = from_a.y;
        As[load_a_column + 2][load_a_row] = from_a.z;
        As[load_a_column + 3][load_a_row] = from_a.w;
        *(float4*)&Bs[load_b_row][load_b_column] = from_b;
        __syncthreads();
        for (int k = 0; k < 8; ++k) {
            *(float4*)&a[0] = *(const float4*)&As[k][ty * 4];
            *(float4*)&a[4] = *(const float4*)&As[k][ty * 4 + 64];
            *(float4*)&b[0] = *(const float4*)&Bs[k][tx * 4];
            *(float4*)&b[4] = *(const float4*)&Bs[k][tx * 4 + 64];
            for (int i = 0; i < 8; ++i)
                for (int j = 0; j < 8; ++j)
                    c[i][j] += a[i] * b[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 8; ++j)
            C[(blockIdx.y * 128 + ty * 8 + i) * N + blockIdx.x * 128 + tx * 8 + j] = c[i][j];
}

// Sums: first with interleaved addressing, then with sequential addressing.
// bankcheck: block=256
__global__ void reduce_interleaved(const float* in, float* out, int n) {
    __shared__ float data[256];
    int tid = threadIdx.x;
    int i = blockIdx.x * blockDim.x + tid;
    data[tid] = i < n ? in[i] : 0.0f;
    __syncthreads();
    for (int s = 1; s < 256; s *= 2) {
        int index = 2 * s * tid;
        if (index < 256)
            data[index] += data[index + s];
        __syncthreads();
    }
    if (tid == 0)
        out[blockIdx.x] = data[0];
}

// bankcheck: block=256
__global__ void reduce_sequential(const float* in, float* out, int n) {
    extern __shared__ float data_dynamic[];
    int tid = threadIdx.x;
    int i = blockIdx.x * (blockDim.x * 2) + tid;
    data_dynamic[tid] = (i < n ? in[i] : 0.0f) + (i + blockDim.x < n ? in[i + blockDim.x] : 0.0f);
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s)
            data_dynamic[tid] += data_dynamic[tid + s];
        __syncthreads();
    }
    if (tid == 0)
        out[blockIdx.x] = data_dynamic[0];
}

// Two histograms: one for the block, and one that every lane has for itself.
// bankcheck: block=128
__global__ void histogram(const unsigned char* in, unsigned* bins, int n) {
    __shared__ unsigned counts[256];
    __shared__ unsigned own[64][WARP];
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        counts[i] = 0;
    for (int bin = threadIdx.x / WARP; bin < 64; bin += 4)
        own[bin][threadIdx.x % WARP] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        atomicAdd(&counts[in[i]], 1u);
        atomicAdd(&own[in[i] >> 2][threadIdx.x % WARP], 1u);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        atomicAdd(&bins[i], counts[i] + own[i >> 2][i % WARP]);
}

// A stencil with a halo on both sides.
template <int RADIUS>
__global__ void __launch_bounds__(256) stencil(const float* in, float* out) {
    __shared__ float line[256 + 2 * RADIUS];
    int global = blockIdx.x * blockDim.x + threadIdx.x;
    int local = threadIdx.x + RADIUS;
    line[local] = in[global];
    if (threadIdx.x < RADIUS) {
        line[local - RADIUS] = in[global - RADIUS];
        line[local + 256] = in[global + 256];
    }
    __syncthreads();
    float result = 0.0f;
    for (int offset = -RADIUS; offset <= RADIUS; ++offset)
        result += line[local + offset];
    out[global] = result;
}

template __global__ void stencil<3>(const float*, float*);

// Double precision columns, two words for each lane.
// bankcheck: block=16,16
__global__ void columns(const double* in, double* out, int pitch) {
    __shared__ double square[16][16];
    square[threadIdx.y][threadIdx.x] = in[threadIdx.y * pitch + threadIdx.x];
    __syncthreads();
    out[threadIdx.y * pitch + threadIdx.x] = square[threadIdx.x][threadIdx.y];
}
