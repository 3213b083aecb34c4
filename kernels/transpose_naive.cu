// Transpose without shared memory: out[n][m] = in[m][n], `rows` x `columns` floats in.
//
// Predicted for one warp (32 consecutive n of one m): the load touches 4 sectors of 32 bytes, the store 32, one for
// each lane, of which it fills an eighth. No shared memory.
extern "C" __global__ void __launch_bounds__(256)
    transpose_naive(const float *__restrict__ in, float *__restrict__ out, int rows, int columns) {
    const int n = blockIdx.x * 32 + threadIdx.x;
    const int m0 = blockIdx.y * 32 + threadIdx.y;
    for (int m = m0; m < m0 + 32; m += 8)
        if (m < rows && n < columns) out[static_cast<size_t>(n) * rows + m] = in[static_cast<size_t>(m) * columns + n];
}
