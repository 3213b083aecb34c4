// Shared atomics on integers.
//
// A bank serves an atomic one lane at a time: two lanes with the same address cost two. Predicted wavefronts, where
// lanes(G) is the largest number of active lanes of G that touch one bank:
//   32-bit add, min, max, and, or, xor, exch, inc, dec    lanes(0-31), with or without a result (atom, red)
//   32-bit compare-and-swap                               2 x lanes(0-31)
//   64-bit compare-and-swap                               2 x (lanes(0-15) + lanes(16-31))
// Additions of f32, f64, f16x2 and 64-bit integers compile to compare-and-swap loops and have no fixed number.
#include "request.cuh"

#define ATOMIC(name, Type, instruction)                                                          \
    struct Type : SendOperation {                                                                \
        using SendOperation::SendOperation;                                                      \
        __device__ void issue(unsigned address, unsigned (&out)[4]) const {                      \
            asm volatile(instruction " %0, [%1], %2;"                                            \
                         : "=r"(out[0]) : "r"(address), "r"(in[0]) : "memory");                  \
        }                                                                                        \
    };                                                                                           \
    REQUEST_KERNEL(name, Type)

#define REDUCTION(name, Type, instruction)                                                       \
    struct Type : SendOperation {                                                                \
        using SendOperation::SendOperation;                                                      \
        __device__ void issue(unsigned address, unsigned (&)[4]) const {                         \
            asm volatile(instruction " [%0], %1;" ::"r"(address), "r"(in[0]) : "memory");        \
        }                                                                                        \
    };                                                                                           \
    REQUEST_KERNEL(name, Type)

struct Cas32 : SendOperation {
    using SendOperation::SendOperation;
    __device__ void issue(unsigned address, unsigned (&out)[4]) const {
        asm volatile("atom.shared.cas.b32 %0, [%1], %2, %3;"
                     : "=r"(out[0]) : "r"(address), "r"(in[0]), "r"(in[1]) : "memory");
    }
};

struct Cas64 : SendOperation {
    using SendOperation::SendOperation;
    __device__ void issue(unsigned address, unsigned (&out)[4]) const {
        asm volatile("{ .reg .b64 d; atom.shared.cas.b64 d, [%2], %3, %4; mov.b64 {%0, %1}, d; }"
                     : "=r"(out[0]), "=r"(out[1]) : "r"(address), "l"(low()), "l"(high()) : "memory");
    }
};

REQUEST_KERNEL(atom_shared_cas_b32, Cas32)
REQUEST_KERNEL(atom_shared_cas_b64, Cas64)

ATOMIC(atom_shared_add_u32, AtomAddU32, "atom.shared.add.u32")
ATOMIC(atom_shared_add_s32, AtomAddS32, "atom.shared.add.s32")
ATOMIC(atom_shared_min_u32, AtomMinU32, "atom.shared.min.u32")
ATOMIC(atom_shared_min_s32, AtomMinS32, "atom.shared.min.s32")
ATOMIC(atom_shared_max_u32, AtomMaxU32, "atom.shared.max.u32")
ATOMIC(atom_shared_max_s32, AtomMaxS32, "atom.shared.max.s32")
ATOMIC(atom_shared_and_b32, AtomAnd, "atom.shared.and.b32")
ATOMIC(atom_shared_or_b32, AtomOr, "atom.shared.or.b32")
ATOMIC(atom_shared_xor_b32, AtomXor, "atom.shared.xor.b32")
ATOMIC(atom_shared_exch_b32, AtomExch, "atom.shared.exch.b32")
ATOMIC(atom_shared_inc_u32, AtomInc, "atom.shared.inc.u32")
ATOMIC(atom_shared_dec_u32, AtomDec, "atom.shared.dec.u32")

REDUCTION(red_shared_add_u32, RedAddU32, "red.shared.add.u32")
REDUCTION(red_shared_add_s32, RedAddS32, "red.shared.add.s32")
REDUCTION(red_shared_min_u32, RedMinU32, "red.shared.min.u32")
REDUCTION(red_shared_min_s32, RedMinS32, "red.shared.min.s32")
REDUCTION(red_shared_max_u32, RedMaxU32, "red.shared.max.u32")
REDUCTION(red_shared_max_s32, RedMaxS32, "red.shared.max.s32")
REDUCTION(red_shared_and_b32, RedAnd, "red.shared.and.b32")
REDUCTION(red_shared_or_b32, RedOr, "red.shared.or.b32")
REDUCTION(red_shared_xor_b32, RedXor, "red.shared.xor.b32")
REDUCTION(red_shared_inc_u32, RedInc, "red.shared.inc.u32")
REDUCTION(red_shared_dec_u32, RedDec, "red.shared.dec.u32")
