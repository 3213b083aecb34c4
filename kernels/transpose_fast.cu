// Transpose through a 64x64 tile, 16 bytes a lane in global memory and out of the tile.
//
// A thread loads float4 of one input row and stores its 4 words into 4 rows of the tile: element (m, n) is word
// m ^ 2 * (n / 4) of row n. It then loads float4 of a tile row and stores them to one output row.
//
// Predicted for one warp (2 rows of 16 float4, 512 bytes): the global load and store touch 16 sectors each, all of them
// whole. A shared store puts lane 16*h + g into bank (m + h) ^ 2g: 32 banks, 1 wavefront. A shared load takes 4
// wavefronts, the least for 512 bytes: 8 consecutive lanes read 8 consecutive chunks of one row, in another order.
//
// Tiles are taken down the input, so that the blocks at work write whole output rows; 4 blocks of a cluster start
// together and write next to one another.
#if __CUDA_ARCH__ >= 900
#define TOGETHER __cluster_dims__(4, 1, 1)
#else
#define TOGETHER
#endif
constexpr int TILE = 64, GROUPS = TILE / 4, THREADS = 512, BLOCKS = 4;
constexpr int EACH = TILE * GROUPS / THREADS;

// 4 floats of a row from column `at` on; WHOLE: the row's length is a multiple of 4, so they are aligned.
template <bool WHOLE>
__device__ float4 load(const float *row, int at, int length) {
    if (at >= length) return {};
    if (WHOLE) return *reinterpret_cast<const float4 *>(row + at);
    return make_float4(row[at], at + 1 < length ? row[at + 1] : 0, at + 2 < length ? row[at + 2] : 0,
                       at + 3 < length ? row[at + 3] : 0);
}

template <bool WHOLE>
__device__ void store(float *row, int at, int length, float4 v) {
    if (at >= length) return;
    if (WHOLE) {
        *reinterpret_cast<float4 *>(row + at) = v;
        return;
    }
    row[at] = v.x;
    if (at + 1 < length) row[at + 1] = v.y;
    if (at + 2 < length) row[at + 2] = v.z;
    if (at + 3 < length) row[at + 3] = v.w;
}

template <bool WHOLE>
__device__ void transpose(const float *in, float *out, int rows, int columns, int m0, int n0, float (*tile)[TILE]) {
    float4 v[EACH];
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        const int i = threadIdx.x + k * THREADS, m = m0 + i / GROUPS, n = n0 + i % GROUPS * 4;
        if (m < rows) v[k] = load<WHOLE>(in + static_cast<size_t>(m) * columns, n, columns);
    }
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        const int i = threadIdx.x + k * THREADS, m = i / GROUPS, g = i % GROUPS, word = m ^ 2 * g;
        tile[4 * g][word] = v[k].x;
        tile[4 * g + 1][word] = v[k].y;
        tile[4 * g + 2][word] = v[k].z;
        tile[4 * g + 3][word] = v[k].w;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        const int i = threadIdx.x + k * THREADS, n = i / GROUPS, g = i % GROUPS, swizzle = 2 * (n / 4);
        const float4 w = *reinterpret_cast<const float4 *>(&tile[n][4 * g ^ (swizzle & ~3)]);
        const float4 sorted = swizzle & 2 ? make_float4(w.z, w.w, w.x, w.y) : w;
        if (n0 + n < columns) store<WHOLE>(out + static_cast<size_t>(n0 + n) * rows, m0 + 4 * g, rows, sorted);
    }
}

extern "C" __global__ void TOGETHER __launch_bounds__(THREADS, BLOCKS)
    transpose_fast(const float *__restrict__ in, float *__restrict__ out, int rows, int columns) {
    __shared__ __align__(16) float tile[TILE][TILE];
    const int down = (rows + TILE - 1) / TILE;
    const int m0 = blockIdx.x % down * TILE, n0 = blockIdx.x / down * TILE;  // those that fill up a cluster: past columns
    if (rows % 4 || columns % 4)
        transpose<false>(in, out, rows, columns, m0, n0, tile);
    else
        transpose<true>(in, out, rows, columns, m0, n0, tile);
}
