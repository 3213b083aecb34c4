// Transpose through a 64x64 tile with 16-byte accesses everywhere, for sizes that are multiples of 4.
//
// A thread reads four float4, one below the other, and turns this 4x4 block in registers. The tile holds columns of the
// input as rows: 16 groups of 4 floats each; column n keeps group g at g ^ (n/4 mod 16).
//
// Predicted for one warp: global loads and stores touch 16 sectors for 512 bytes (coalesced); the shared store and the
// shared load take 4 wavefronts each, the least for 512 bytes. In the store, 8 consecutive lanes hold the same g and 8
// consecutive n/4: g ^ n/4 runs over all 8 groups of banks. In the load they hold the same n and 8 consecutive g.
constexpr int TILE = 64, GROUPS = TILE / 4, THREADS = GROUPS * GROUPS;

// Sizes that are no multiples of 4 have no aligned float4: the same tile, one float at a time.
__device__ void transpose_floats(const float *in, float *out, int rows, int columns, int m0, int n0, float *tile) {
    for (int i = threadIdx.x; i < TILE * TILE; i += THREADS) {
        const int m = i / TILE, n = i % TILE;
        if (m0 + m < rows && n0 + n < columns)
            tile[n * TILE + (m ^ n % TILE)] = in[static_cast<size_t>(m0 + m) * columns + n0 + n];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < TILE * TILE; i += THREADS) {
        const int n = i / TILE, m = i % TILE;
        if (m0 + m < rows && n0 + n < columns)
            out[static_cast<size_t>(n0 + n) * rows + m0 + m] = tile[n * TILE + (m ^ n % TILE)];
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    transpose_fast(const float *__restrict__ in, float *__restrict__ out, int rows, int columns) {
    __shared__ float4 tile[TILE][GROUPS];
    const int across = (columns + TILE - 1) / TILE;
    const int m0 = blockIdx.x / across * TILE, n0 = blockIdx.x % across * TILE;
    if (rows % 4 || columns % 4) return transpose_floats(in, out, rows, columns, m0, n0, &tile[0][0].x);

    const int low = threadIdx.x % GROUPS, high = threadIdx.x / GROUPS;
    {
        const int m = m0 + 4 * high, n = n0 + 4 * low;
        float4 row[4] = {};
        if (m < rows && n < columns)
            for (int i = 0; i < 4; ++i)
                row[i] = *reinterpret_cast<const float4 *>(in + static_cast<size_t>(m + i) * columns + n);
        tile[4 * low + 0][high ^ low] = make_float4(row[0].x, row[1].x, row[2].x, row[3].x);
        tile[4 * low + 1][high ^ low] = make_float4(row[0].y, row[1].y, row[2].y, row[3].y);
        tile[4 * low + 2][high ^ low] = make_float4(row[0].z, row[1].z, row[2].z, row[3].z);
        tile[4 * low + 3][high ^ low] = make_float4(row[0].w, row[1].w, row[2].w, row[3].w);
    }
    __syncthreads();
    for (int n = high; n < TILE; n += GROUPS)
        if (n0 + n < columns && m0 + 4 * low < rows)
            *reinterpret_cast<float4 *>(out + static_cast<size_t>(n0 + n) * rows + m0 + 4 * low) = tile[n][low ^ n / 4];
}
