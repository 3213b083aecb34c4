// Candidates for the fastest transpose; tune_transpose.py compiles one per set of macros.
//
//   ROWS, COLUMNS   the tile, in floats of the input      THREADS  a block
//   BAND            rows of tiles visited together: tiles run down a band first, then along it
//   LOAD, STORE     cache hints                           STAGES   0: through registers; n: cp.async, n tiles deep
// A grid smaller than the number of tiles makes the blocks persistent.
constexpr int GROUPS_M = ROWS / 4, GROUPS_N = COLUMNS / 4;
constexpr int PER_THREAD = GROUPS_M * GROUPS_N / THREADS;
static_assert(PER_THREAD * THREADS == GROUPS_M * GROUPS_N, "threads must divide the 4x4 blocks of a tile");

__device__ float4 load(const float *p) {
    float4 v;
#if LOAD == 0
    v = *reinterpret_cast<const float4 *>(p);
#elif LOAD == 1
    asm volatile("ld.global.cs.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(p));
#elif LOAD == 2
    asm volatile("ld.global.nc.L1::no_allocate.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(p));
#elif LOAD == 3
    asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(p));
#elif LOAD == 4
    asm volatile("{ .reg .b64 c; createpolicy.fractional.L2::evict_first.b64 c, 1.0;"
                 " ld.global.nc.L1::no_allocate.L2::cache_hint.v4.f32 {%0,%1,%2,%3}, [%4], c; }"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(p));
#endif
    return v;
}

__device__ void store(float *p, float4 v) {
#if STORE == 0
    *reinterpret_cast<float4 *>(p) = v;
#elif STORE == 1
    asm volatile("st.global.cs.v4.f32 [%0], {%1,%2,%3,%4};" ::"l"(p), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory");
#elif STORE == 2
    asm volatile("st.global.cg.v4.f32 [%0], {%1,%2,%3,%4};" ::"l"(p), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory");
#elif STORE == 3
    asm volatile("st.global.wt.v4.f32 [%0], {%1,%2,%3,%4};" ::"l"(p), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory");
#elif STORE == 4
    asm volatile("{ .reg .b64 c; createpolicy.fractional.L2::evict_first.b64 c, 1.0;"
                 " st.global.L2::cache_hint.v4.f32 [%0], {%1,%2,%3,%4}, c; }"
                 ::"l"(p), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory");
#elif STORE == 5
    asm volatile("{ .reg .b64 c; createpolicy.fractional.L2::evict_last.b64 c, 1.0;"
                 " st.global.L2::cache_hint.v4.f32 [%0], {%1,%2,%3,%4}, c; }"
                 ::"l"(p), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory");
#endif
}

struct Tile { int m0, n0; };

__device__ Tile tile_at(int index, int tiles_m, int tiles_n) {
    if (BAND < 0) {  // diagonals
        const int m = index % tiles_m;
        return {m * ROWS, (index / tiles_m + m) % tiles_n * COLUMNS};
    }
    const int band = index / (BAND * tiles_n), first = band * BAND;
    const int height = min(BAND, tiles_m - first), rest = index - first * tiles_n;
    return {(first + rest % height) * ROWS, rest / height * COLUMNS};
}

// Sizes that are no multiple of 4: one float at a time through the same tile.
__device__ void transpose_scalar(const float *in, float *out, int rows, int columns, Tile tile, float *shared) {
    for (int i = threadIdx.x; i < ROWS * COLUMNS; i += THREADS) {
        const int m = tile.m0 + i / COLUMNS, n = tile.n0 + i % COLUMNS;
        if (m < rows && n < columns) shared[i / COLUMNS + i % COLUMNS * ROWS] = in[static_cast<size_t>(m) * columns + n];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < ROWS * COLUMNS; i += THREADS) {
        const int m = tile.m0 + i % ROWS, n = tile.n0 + i / ROWS;
        if (m < rows && n < columns) out[static_cast<size_t>(n) * rows + m] = shared[i];
    }
    __syncthreads();
}

#if STAGES == 0
__device__ void fetch(const float *in, int rows, int columns, Tile tile, float4 (&v)[PER_THREAD][4]) {
#pragma unroll
    for (int b = 0; b < PER_THREAD; ++b) {
        const int g = threadIdx.x + b * THREADS, n = tile.n0 + g % GROUPS_N * 4, m = tile.m0 + g / GROUPS_N * 4;
#pragma unroll
        for (int i = 0; i < 4; ++i)
            if (m < rows && n < columns) v[b][i] = load(in + static_cast<size_t>(m + i) * columns + n);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    transpose(const float *__restrict__ in, float *__restrict__ out, int rows, int columns) {
    extern __shared__ float4 shared[];  // [COLUMNS][GROUPS_M]
    const int tiles_m = (rows + ROWS - 1) / ROWS, tiles_n = (columns + COLUMNS - 1) / COLUMNS;
    const int tiles = tiles_m * tiles_n;
    if (rows % 4 || columns % 4) {
        for (int index = blockIdx.x; index < tiles; index += gridDim.x)
            transpose_scalar(in, out, rows, columns, tile_at(index, tiles_m, tiles_n), reinterpret_cast<float *>(shared));
        return;
    }
    float4 v[PER_THREAD][4];
    int index = blockIdx.x;
    Tile tile = tile_at(index, tiles_m, tiles_n);
    fetch(in, rows, columns, tile, v);
    while (true) {
#pragma unroll
        for (int b = 0; b < PER_THREAD; ++b) {
            const int g = threadIdx.x + b * THREADS, gn = g % GROUPS_N, gm = g / GROUPS_N;
            float4 *at = shared + gn * 4 * GROUPS_M + (gm ^ gn % GROUPS_M);
            at[0 * GROUPS_M] = make_float4(v[b][0].x, v[b][1].x, v[b][2].x, v[b][3].x);
            at[1 * GROUPS_M] = make_float4(v[b][0].y, v[b][1].y, v[b][2].y, v[b][3].y);
            at[2 * GROUPS_M] = make_float4(v[b][0].z, v[b][1].z, v[b][2].z, v[b][3].z);
            at[3 * GROUPS_M] = make_float4(v[b][0].w, v[b][1].w, v[b][2].w, v[b][3].w);
        }
        __syncthreads();
        const Tile done = tile;
        index += gridDim.x;
        if (index < tiles) {
            tile = tile_at(index, tiles_m, tiles_n);
            fetch(in, rows, columns, tile, v);
        }
#pragma unroll
        for (int k = 0; k < PER_THREAD * 4; ++k) {
            const int i = threadIdx.x + k * THREADS, n = i / GROUPS_M, gm = i % GROUPS_M;
            if (done.n0 + n < columns && done.m0 + gm * 4 < rows)
                store(out + static_cast<size_t>(done.n0 + n) * rows + done.m0 + gm * 4,
                      shared[n * GROUPS_M + (gm ^ n / 4 % GROUPS_M)]);
        }
        if (index >= tiles) break;
        __syncthreads();
    }
}
#else
// cp.async into tile[m][group of 4 n ^ m / 4]; each thread then reads 4x4 blocks and stores them transposed.
__device__ void fill(const float *in, int rows, int columns, Tile tile, float4 *stage) {
#pragma unroll
    for (int k = 0; k < PER_THREAD * 4; ++k) {
        const int i = threadIdx.x + k * THREADS, m = i / GROUPS_N, gn = i % GROUPS_N;
        const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(stage + m * GROUPS_N + (gn ^ m / 4 % GROUPS_N)));
        if (tile.m0 + m < rows && tile.n0 + gn * 4 < columns)
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                         ::"r"(to), "l"(in + static_cast<size_t>(tile.m0 + m) * columns + tile.n0 + gn * 4) : "memory");
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    transpose(const float *__restrict__ in, float *__restrict__ out, int rows, int columns) {
    extern __shared__ float4 shared[];  // [STAGES][ROWS][GROUPS_N]
    const int tiles_m = (rows + ROWS - 1) / ROWS, tiles_n = (columns + COLUMNS - 1) / COLUMNS;
    const int tiles = tiles_m * tiles_n;
    if (rows % 4 || columns % 4) {
        for (int index = blockIdx.x; index < tiles; index += gridDim.x)
            transpose_scalar(in, out, rows, columns, tile_at(index, tiles_m, tiles_n), reinterpret_cast<float *>(shared));
        return;
    }
    int ahead = blockIdx.x;
#pragma unroll
    for (int s = 0; s < STAGES; ++s) {
        if (ahead < tiles) fill(in, rows, columns, tile_at(ahead, tiles_m, tiles_n), shared + s * ROWS * GROUPS_N);
        asm volatile("cp.async.commit_group;" ::: "memory");
        ahead += gridDim.x;
    }
    int s = 0;
    for (int index = blockIdx.x; index < tiles; index += gridDim.x) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 1) : "memory");
        __syncthreads();
        const Tile tile = tile_at(index, tiles_m, tiles_n);
        float4 *stage = shared + s * ROWS * GROUPS_N;
        float4 v[PER_THREAD][4];
#pragma unroll
        for (int b = 0; b < PER_THREAD; ++b) {
            const int g = threadIdx.x + b * THREADS, gm = g % GROUPS_M, gn = g / GROUPS_M;
#pragma unroll
            for (int i = 0; i < 4; ++i) v[b][i] = stage[(gm * 4 + i) * GROUPS_N + (gn ^ gm % GROUPS_N)];
        }
        __syncthreads();
        if (ahead < tiles) fill(in, rows, columns, tile_at(ahead, tiles_m, tiles_n), stage);
        asm volatile("cp.async.commit_group;" ::: "memory");
        ahead += gridDim.x;
        s = s + 1 == STAGES ? 0 : s + 1;
#pragma unroll
        for (int b = 0; b < PER_THREAD; ++b) {
            const int g = threadIdx.x + b * THREADS, m = tile.m0 + g % GROUPS_M * 4, n = tile.n0 + g / GROUPS_M * 4;
            if (m < rows && n < columns) {
                float *to = out + static_cast<size_t>(n) * rows + m;
                store(to, make_float4(v[b][0].x, v[b][1].x, v[b][2].x, v[b][3].x));
                store(to + rows, make_float4(v[b][0].y, v[b][1].y, v[b][2].y, v[b][3].y));
                store(to + 2 * static_cast<size_t>(rows), make_float4(v[b][0].z, v[b][1].z, v[b][2].z, v[b][3].z));
                store(to + 3 * static_cast<size_t>(rows), make_float4(v[b][0].w, v[b][1].w, v[b][2].w, v[b][3].w));
            }
        }
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
}
#endif
