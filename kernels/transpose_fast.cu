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
constexpr int STEP = THREADS / GROUPS, EACH = TILE / STEP;

// 4 floats, of which `left` belong to the row. WHOLE: all rows have a multiple of 4, so all are there, and aligned.
template <bool WHOLE>
__device__ float4 load(const float *from, int left) {
    if (WHOLE) return *reinterpret_cast<const float4 *>(from);
    return make_float4(from[0], left > 1 ? from[1] : 0, left > 2 ? from[2] : 0, left > 3 ? from[3] : 0);
}

template <bool WHOLE>
__device__ void store(float *to, int left, float4 v) {
    if (WHOLE) {
        *reinterpret_cast<float4 *>(to) = v;
        return;
    }
    to[0] = v.x;
    if (left > 1) to[1] = v.y;
    if (left > 2) to[2] = v.z;
    if (left > 3) to[3] = v.w;
}

template <bool WHOLE>
__device__ void transpose(const float *in, float *out, int rows, int columns, int m0, int n0, float (*tile)[TILE]) {
    const int g = threadIdx.x % GROUPS, first = threadIdx.x / GROUPS;
    float4 v[EACH];
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        const int m = m0 + first + k * STEP, n = n0 + 4 * g;
        if (m < rows && n < columns) v[k] = load<WHOLE>(in + static_cast<size_t>(m) * columns + n, columns - n);
    }
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        const int word = first + k * STEP ^ 2 * g;
        tile[4 * g][word] = v[k].x;
        tile[4 * g + 1][word] = v[k].y;
        tile[4 * g + 2][word] = v[k].z;
        tile[4 * g + 3][word] = v[k].w;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        const int row = first + k * STEP, swizzle = 2 * (row / 4), m = m0 + 4 * g, n = n0 + row;
        const float4 w = *reinterpret_cast<const float4 *>(&tile[row][4 * g ^ (swizzle & ~3)]);
        const float4 sorted = swizzle & 2 ? make_float4(w.z, w.w, w.x, w.y) : w;
        if (m < rows && n < columns) store<WHOLE>(out + static_cast<size_t>(n) * rows + m, rows - m, sorted);
    }
}

extern "C" __global__ void TOGETHER __launch_bounds__(THREADS, BLOCKS)
    transpose_fast(const float *__restrict__ in, float *__restrict__ out, int rows, int columns) {
    __shared__ __align__(16) float tile[TILE][TILE];
    const int down = (rows + TILE - 1) / TILE;
    const int m0 = blockIdx.x % down * TILE, n0 = blockIdx.x / down * TILE;  // blocks that fill up a cluster: past it
    if (rows % 4 || columns % 4)
        transpose<false>(in, out, rows, columns, m0, n0, tile);
    else
        transpose<true>(in, out, rows, columns, m0, n0, tile);
}
