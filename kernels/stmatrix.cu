// stmatrix (sm_90 and later): the fragments of the matrix units back into shared memory, the mirror of ldmatrix.
//
// Lane i of the first 8, 16, 32 lanes (x1, x2, x4) supplies the address of one 16-byte row: lanes 8m..8m+7 those of
// matrix m. Predicted wavefronts: the sum over the matrices of deg(their 8 rows), as for ldmatrix. Predicted data:
// with r = l / 4, k = l % 4 register m of lane l becomes A[r][2k], A[r][2k+1] of matrix m; .trans makes it
// A[2k][r], A[2k+1][r].
#include "request.cuh"

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
struct MatrixStore : SendOperation {
    static constexpr bool whole_warp = true;
    using SendOperation::SendOperation;
};

#define STMATRIX(name, Type, shape, IN, inputs)                                                    \
    struct Type : MatrixStore {                                                                    \
        using MatrixStore::MatrixStore;                                                            \
        __device__ void issue(unsigned address, unsigned (&)[4]) const {                           \
            asm volatile("stmatrix.sync.aligned.m8n8." shape ".shared.b16 [%0], " IN ";"           \
                         ::"r"(address), inputs : "memory");                                       \
        }                                                                                          \
    };                                                                                             \
    REQUEST_KERNEL(name, Type)
#define ONE "r"(in[0])
#define TWO "r"(in[0]), "r"(in[1])
#define FOUR "r"(in[0]), "r"(in[1]), "r"(in[2]), "r"(in[3])
#define LIST(...) __VA_ARGS__

STMATRIX(stmatrix_x1, StMatrix1, "x1", "{%1}", LIST(ONE))
STMATRIX(stmatrix_x2, StMatrix2, "x2", "{%1, %2}", LIST(TWO))
STMATRIX(stmatrix_x4, StMatrix4, "x4", "{%1, %2, %3, %4}", LIST(FOUR))
STMATRIX(stmatrix_x1_trans, StMatrixTrans1, "x1.trans", "{%1}", LIST(ONE))
STMATRIX(stmatrix_x2_trans, StMatrixTrans2, "x2.trans", "{%1, %2}", LIST(TWO))
STMATRIX(stmatrix_x4_trans, StMatrixTrans4, "x4.trans", "{%1, %2, %3, %4}", LIST(FOUR))
#endif
