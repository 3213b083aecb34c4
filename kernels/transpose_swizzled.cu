// Transpose through a 32x32 tile whose row r has its columns exchanged by column ^= r.
//
// Predicted for one warp: 4 sectors for each global access; tile[j][tx ^ j] and tile[tx][j ^ tx] take 1 wavefront each:
// tx ^ j runs over all 32 banks as tx does. Costs no shared memory.
extern "C" __global__ void __launch_bounds__(256)
    transpose_swizzled(const float *__restrict__ in, float *__restrict__ out, int rows, int columns) {
    __shared__ float tile[32][32];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int m0 = blockIdx.y * 32, n0 = blockIdx.x * 32;

    for (int j = ty; j < 32; j += 8)
        if (m0 + j < rows && n0 + tx < columns)
            tile[j][tx ^ j] = in[static_cast<size_t>(m0 + j) * columns + n0 + tx];
    __syncthreads();
    for (int j = ty; j < 32; j += 8)
        if (n0 + j < columns && m0 + tx < rows)
            out[static_cast<size_t>(n0 + j) * rows + m0 + tx] = tile[tx][j ^ tx];
}
