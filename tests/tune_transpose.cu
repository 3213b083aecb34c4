// Candidates for the fastest transpose; tune_transpose.py compiles one per set of macros.
//
//   ROWS, COLUMNS   the tile, in floats of the input      THREADS  a block
//   BAND            rows of tiles visited together: tiles run down a band first, then along it
//   LOAD, STORE     cache hints                           STAGES   0: through registers; n: cp.async, n tiles deep
//   WORDS           1: a thread takes single float4, not 4x4 blocks, and stores their words into the tile one by one
//   TMA             1: the copy engine fills STAGES tiles and drains OUTS tiles (sm_90)
//   MIN_BLOCKS      blocks a multiprocessor must have registers for (0: the compiler's choice)
//   CHUNK           tiles a block handles, one after the other; 0: every gridDim.x-th tile (persistent blocks)
#if MIN_BLOCKS
#define BOUNDS THREADS, MIN_BLOCKS
#else
#define BOUNDS THREADS
#endif
constexpr int GROUPS_M = ROWS / 4, GROUPS_N = COLUMNS / 4;
#if WORDS
constexpr int PER_THREAD = ROWS * GROUPS_N / THREADS;
static_assert(PER_THREAD * THREADS == ROWS * GROUPS_N, "threads must divide the float4 of a tile");
#else
constexpr int PER_THREAD = GROUPS_M * GROUPS_N / THREADS;
static_assert(PER_THREAD * THREADS == GROUPS_M * GROUPS_N, "threads must divide the 4x4 blocks of a tile");
#endif

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

#if TMA
// Input tiles arrive as boxes of 32 columns, output tiles leave as boxes of 32 rows, both with the 128-byte swizzle: row r
// of a box keeps its 16-byte chunk c at c ^ r % 8. A quarter warp reads 2 x 4 and writes 2 x 4 chunks: lanes with gn & 2
// write the rows of their block in another order, so that all 8 chunks differ.
__device__ unsigned at(const void *p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

__device__ void fill(const void *map, unsigned stage, unsigned barrier, Tile tile) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "n"(ROWS * COLUMNS * 4) : "memory");
#pragma unroll
    for (int box = 0; box < COLUMNS / 32; ++box)
#if LOAD == 4
        asm volatile("{ .reg .b64 c; createpolicy.fractional.L2::evict_first.b64 c, 1.0;"
                     " cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0],"
                     " [%1, {%2, %3}], [%4], c; }" ::"r"(stage + box * ROWS * 128),
#else
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}],"
                     " [%4];" ::"r"(stage + box * ROWS * 128),
#endif
                     "l"(map), "r"(tile.n0 + 32 * box), "r"(tile.m0), "r"(barrier) : "memory");
}

__device__ void drain(const void *map, unsigned from, Tile tile) {
#pragma unroll
    for (int box = 0; box < ROWS / 32; ++box)
#if STORE == 4
        asm volatile("{ .reg .b64 c; createpolicy.fractional.L2::evict_first.b64 c, 1.0;"
                     " cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group.L2::cache_hint [%0, {%1, %2}], [%3], c; }"
#else
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];"
#endif
                     ::"l"(map), "r"(tile.m0 + 32 * box), "r"(tile.n0), "r"(from + box * COLUMNS * 128) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

__device__ void wait(unsigned barrier, int parity) {
    unsigned done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
}

extern "C" __global__ void __launch_bounds__(THREADS)
    transpose(const float *in, float *out, int rows, int columns, const void *in_map, const void *out_map) {
    extern __shared__ __align__(1024) float4 shared[];  // [STAGES + OUTS] tiles, then a barrier a stage
    unsigned long long *full = reinterpret_cast<unsigned long long *>(shared + (STAGES + OUTS) * ROWS * GROUPS_N);
    const int tiles_m = (rows + ROWS - 1) / ROWS, tiles_n = (columns + COLUMNS - 1) / COLUMNS;
    const int tiles = tiles_m * tiles_n;
    if (rows % 4 || columns % 4) {
        for (int index = blockIdx.x; index < tiles; index += gridDim.x)
            transpose_scalar(in, out, rows, columns, tile_at(index, tiles_m, tiles_n), reinterpret_cast<float *>(shared));
        return;
    }
    constexpr int TILE_CHUNKS = ROWS * GROUPS_N;
    int ahead = blockIdx.x;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(full + s)) : "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        for (int s = 0; s < STAGES; ++s, ahead += gridDim.x)
            if (ahead < tiles) fill(in_map, at(shared + s * TILE_CHUNKS), at(full + s), tile_at(ahead, tiles_m, tiles_n));
    }
    __syncthreads();
    int s = 0, o = 0, parity = 0;
    for (int index = blockIdx.x; index < tiles; index += gridDim.x) {
        wait(at(full + s), parity);
        float4 *stage = shared + s * TILE_CHUNKS, *leaving = shared + (STAGES + o) * TILE_CHUNKS;
        float4 v[PER_THREAD][4];
#pragma unroll
        for (int b = 0; b < PER_THREAD; ++b) {
            const int g = threadIdx.x + b * THREADS, rest = g >> 3;
            const int gm = rest % (GROUPS_M / 2) * 2 + (g & 1), gn = rest / (GROUPS_M / 2) * 4 + (g >> 1 & 3);
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int row = 4 * gm + i;
                v[b][i] = stage[gn / 8 * ROWS * 8 + row * 8 + (gn % 8 ^ row % 8)];
            }
        }
        if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(OUTS - 1) : "memory");
        __syncthreads();
        if (threadIdx.x == 0) {
            if (ahead < tiles) fill(in_map, at(stage), at(full + s), tile_at(ahead, tiles_m, tiles_n));
            ahead += gridDim.x;
        }
#pragma unroll
        for (int b = 0; b < PER_THREAD; ++b) {
            const int g = threadIdx.x + b * THREADS, rest = g >> 3;
            const int gm = rest % (GROUPS_M / 2) * 2 + (g & 1), gn = rest / (GROUPS_M / 2) * 4 + (g >> 1 & 3);
            const bool swap = gn & 2;
            const float4 column[4] = {
                make_float4(v[b][0].x, v[b][1].x, v[b][2].x, v[b][3].x), make_float4(v[b][0].y, v[b][1].y, v[b][2].y, v[b][3].y),
                make_float4(v[b][0].z, v[b][1].z, v[b][2].z, v[b][3].z), make_float4(v[b][0].w, v[b][1].w, v[b][2].w, v[b][3].w)};
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int n = 4 * gn + (swap ? j ^ 2 : j);
                leaving[gm / 8 * COLUMNS * 8 + n * 8 + (gm % 8 ^ n % 8)] = swap ? column[j ^ 2] : column[j];
            }
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (threadIdx.x == 0) drain(out_map, at(leaving), tile_at(index, tiles_m, tiles_n));
        if (++s == STAGES) s = 0, parity ^= 1;
        if (++o == OUTS) o = 0;
    }
    if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
#elif WORDS
// Element (m, n) is word m ^ SPREAD * (n / 4) of row n: the lanes of a warp, GROUPS_N groups of columns in SPREAD rows, then
// store into 32 banks. The swizzle permutes words inside the float4 of a row if SPREAD is less than 4.
constexpr int SPREAD = GROUPS_N < 32 ? 32 / GROUPS_N : 1;

__device__ float4 permuted(float4 v, int by) {
    if (by & 1) v = make_float4(v.y, v.x, v.w, v.z);
    if (by & 2) v = make_float4(v.z, v.w, v.x, v.y);
    return v;
}

extern "C" __global__ void __launch_bounds__(BOUNDS)
    transpose(const float *__restrict__ in, float *__restrict__ out, int rows, int columns) {
    extern __shared__ float words[];  // [COLUMNS][ROWS]
    const int tiles_m = (rows + ROWS - 1) / ROWS, tiles_n = (columns + COLUMNS - 1) / COLUMNS;
    const Tile tile = tile_at(blockIdx.x, tiles_m, tiles_n);
    if (rows % 4 || columns % 4) return transpose_scalar(in, out, rows, columns, tile, words);
    float4 v[PER_THREAD];
#pragma unroll
    for (int k = 0; k < PER_THREAD; ++k) {
        const int i = threadIdx.x + k * THREADS, m = tile.m0 + i / GROUPS_N, n = tile.n0 + i % GROUPS_N * 4;
        if (m < rows && n < columns) v[k] = load(in + static_cast<size_t>(m) * columns + n);
    }
#pragma unroll
    for (int k = 0; k < PER_THREAD; ++k) {
        const int i = threadIdx.x + k * THREADS, m = i / GROUPS_N, gn = i % GROUPS_N;
        float *to = words + gn * 4 * ROWS + (m ^ SPREAD * gn % 32);
        to[0] = v[k].x, to[ROWS] = v[k].y, to[2 * ROWS] = v[k].z, to[3 * ROWS] = v[k].w;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < PER_THREAD; ++k) {
        const int i = threadIdx.x + k * THREADS, n = i / GROUPS_M, gm = i % GROUPS_M, by = SPREAD * (n / 4) % 32;
        const float4 v = *reinterpret_cast<const float4 *>(words + n * ROWS + (4 * gm ^ (by & ~3)));
        if (tile.n0 + n < columns && tile.m0 + gm * 4 < rows)
            store(out + static_cast<size_t>(tile.n0 + n) * rows + tile.m0 + gm * 4, permuted(v, by & 3));
    }
}
#elif STAGES == 0
__device__ void fetch(const float *in, int rows, int columns, Tile tile, float4 (&v)[PER_THREAD][4]) {
#pragma unroll
    for (int b = 0; b < PER_THREAD; ++b) {
        const int g = threadIdx.x + b * THREADS, n = tile.n0 + g % GROUPS_N * 4, m = tile.m0 + g / GROUPS_N * 4;
#pragma unroll
        for (int i = 0; i < 4; ++i)
            if (m < rows && n < columns) v[b][i] = load(in + static_cast<size_t>(m + i) * columns + n);
    }
}

extern "C" __global__ void __launch_bounds__(BOUNDS)
    transpose(const float *__restrict__ in, float *__restrict__ out, int rows, int columns) {
    extern __shared__ float4 shared[];  // [COLUMNS][GROUPS_M]
    const int tiles_m = (rows + ROWS - 1) / ROWS, tiles_n = (columns + COLUMNS - 1) / COLUMNS;
    const int tiles = tiles_m * tiles_n, step = CHUNK ? 1 : gridDim.x;
    int index = CHUNK ? blockIdx.x * CHUNK : blockIdx.x;
    const int end = CHUNK ? min(index + CHUNK, tiles) : tiles;
    if (rows % 4 || columns % 4) {
        for (; index < end; index += step)
            transpose_scalar(in, out, rows, columns, tile_at(index, tiles_m, tiles_n), reinterpret_cast<float *>(shared));
        return;
    }
    float4 v[PER_THREAD][4];
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
        index += step;
        if (index < end) {
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
        if (index >= end) break;
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
