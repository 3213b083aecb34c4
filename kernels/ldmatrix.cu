// ldmatrix: 8x8 matrices of 16-bit elements, from shared memory into the fragments of the matrix units.
//
// Lane i of the first 8, 16, 32 lanes (x1, x2, x4) supplies the address of one 16-byte row: lanes 8m..8m+7 those of
// matrix m. Predicted wavefronts: the sum over the matrices of deg(their 8 rows), where deg is the largest number of
// distinct 4-byte words wanted of one bank: 1 each at best, 8 each where all 8 rows start in the same bank.
// Predicted data, in register m of lane l: with r = l / 4, k = l % 4 the elements A[r][2k], A[r][2k+1] of matrix m;
// .trans gives A[2k][r], A[2k+1][r].
#include "request.cuh"

struct MatrixOperation : ReadOperation {
    static constexpr bool whole_warp = true;
    using ReadOperation::ReadOperation;
};

#define LDMATRIX(name, Type, shape, OUT, outputs, address_operand)                                    \
    struct Type : MatrixOperation {                                                                   \
        using MatrixOperation::MatrixOperation;                                                       \
        __device__ void issue(unsigned address, unsigned (&out)[4]) const {                           \
            asm volatile("ldmatrix.sync.aligned.m8n8." shape ".shared.b16 " OUT ", [" address_operand "];" \
                         : outputs : "r"(address) : "memory");                                        \
        }                                                                                             \
    };                                                                                                \
    REQUEST_KERNEL(name, Type)
#define ONE "=r"(out[0])
#define TWO "=r"(out[0]), "=r"(out[1])
#define FOUR "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
#define LIST(...) __VA_ARGS__

LDMATRIX(ldmatrix_x1, LdMatrix1, "x1", "{%0}", LIST(ONE), "%1")
LDMATRIX(ldmatrix_x2, LdMatrix2, "x2", "{%0, %1}", LIST(TWO), "%2")
LDMATRIX(ldmatrix_x4, LdMatrix4, "x4", "{%0, %1, %2, %3}", LIST(FOUR), "%4")
LDMATRIX(ldmatrix_x1_trans, LdMatrixTrans1, "x1.trans", "{%0}", LIST(ONE), "%1")
LDMATRIX(ldmatrix_x2_trans, LdMatrixTrans2, "x2.trans", "{%0, %1}", LIST(TWO), "%2")
LDMATRIX(ldmatrix_x4_trans, LdMatrixTrans4, "x4.trans", "{%0, %1, %2, %3}", LIST(FOUR), "%4")
