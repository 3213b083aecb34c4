// Transpose through a 32x32 tile of shared memory whose columns lie in one bank each.
//
// Predicted for one warp: global loads and stores touch 4 sectors (coalesced); the shared store tile[j][tx] takes 1
// wavefront, the shared load tile[tx][j] 32: word 32*tx + j is in bank j for all 32 lanes.
extern "C" __global__ void __launch_bounds__(256)
    transpose_conflicts(const float *__restrict__ in, float *__restrict__ out, int rows, int columns) {
    __shared__ float tile[32][32];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int m0 = blockIdx.y * 32, n0 = blockIdx.x * 32;

    for (int j = ty; j < 32; j += 8)
        if (m0 + j < rows && n0 + tx < columns)
            tile[j][tx] = in[static_cast<size_t>(m0 + j) * columns + n0 + tx];
    __syncthreads();
    for (int j = ty; j < 32; j += 8)
        if (n0 + j < columns && m0 + tx < rows)
            out[static_cast<size_t>(n0 + j) * rows + m0 + tx] = tile[tx][j];
}
