// Loads and stores through generic addresses that fall into shared memory.
//
// Predicted wavefronts: as for shared loads and stores of the same width (loads.cu, stores.cu), but generic loads never
// merge groups. The pointer could also point to global memory as far as the compiler can tell; otherwise
// it would emit shared loads and stores.
#include "request.cuh"

// Adds the window of shared memory back to a shared address, out of the compiler's sight.
struct GenericOperation : SendOperation {
    unsigned long long window;
    __device__ GenericOperation(const unsigned char *value, unsigned char *shared, unsigned step)
        : SendOperation(value, shared, step) {
        const unsigned char *base = step ? value : shared;
        window = reinterpret_cast<unsigned long long>(base) - static_cast<unsigned>(__cvta_generic_to_shared(shared));
    }
};

struct GenericLoad8 : GenericOperation {
    using GenericOperation::GenericOperation;
    __device__ void issue(unsigned address, unsigned (&out)[4]) const {
        asm volatile("ld.volatile.u8 %0, [%1];" : "=r"(out[0]) : "l"(window + address) : "memory");
    }
};

struct GenericLoad16 : GenericOperation {
    using GenericOperation::GenericOperation;
    __device__ void issue(unsigned address, unsigned (&out)[4]) const {
        asm volatile("{ .reg .u16 h; ld.volatile.u16 h, [%1]; cvt.u32.u16 %0, h; }"
                     : "=r"(out[0]) : "l"(window + address) : "memory");
    }
};

struct GenericLoad32 : GenericOperation {
    using GenericOperation::GenericOperation;
    __device__ void issue(unsigned address, unsigned (&out)[4]) const {
        asm volatile("ld.volatile.u32 %0, [%1];" : "=r"(out[0]) : "l"(window + address) : "memory");
    }
};

struct GenericLoad64 : GenericOperation {
    using GenericOperation::GenericOperation;
    __device__ void issue(unsigned address, unsigned (&out)[4]) const {
        asm volatile("ld.volatile.v2.b32 {%0, %1}, [%2];"
                     : "=r"(out[0]), "=r"(out[1]) : "l"(window + address) : "memory");
    }
};

struct GenericLoad128 : GenericOperation {
    using GenericOperation::GenericOperation;
    __device__ void issue(unsigned address, unsigned (&out)[4]) const {
        asm volatile("ld.volatile.v4.b32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3]) : "l"(window + address) : "memory");
    }
};

struct GenericStore8 : GenericOperation {
    using GenericOperation::GenericOperation;
    __device__ void issue(unsigned address, unsigned (&)[4]) const {
        asm volatile("st.volatile.u8 [%0], %1;" ::"l"(window + address), "r"(in[0]) : "memory");
    }
};

struct GenericStore16 : GenericOperation {
    using GenericOperation::GenericOperation;
    __device__ void issue(unsigned address, unsigned (&)[4]) const {
        asm volatile("{ .reg .u16 h; cvt.u16.u32 h, %1; st.volatile.u16 [%0], h; }"
                     ::"l"(window + address), "r"(in[0]) : "memory");
    }
};

struct GenericStore32 : GenericOperation {
    using GenericOperation::GenericOperation;
    __device__ void issue(unsigned address, unsigned (&)[4]) const {
        asm volatile("st.volatile.u32 [%0], %1;" ::"l"(window + address), "r"(in[0]) : "memory");
    }
};

struct GenericStore64 : GenericOperation {
    using GenericOperation::GenericOperation;
    __device__ void issue(unsigned address, unsigned (&)[4]) const {
        asm volatile("st.volatile.v2.b32 [%0], {%1, %2};" ::"l"(window + address), "r"(in[0]), "r"(in[1]) : "memory");
    }
};

struct GenericStore128 : GenericOperation {
    using GenericOperation::GenericOperation;
    __device__ void issue(unsigned address, unsigned (&)[4]) const {
        asm volatile("st.volatile.v4.b32 [%0], {%1, %2, %3, %4};"
                     ::"l"(window + address), "r"(in[0]), "r"(in[1]), "r"(in[2]), "r"(in[3]) : "memory");
    }
};

REQUEST_KERNEL(ld_generic_b8, GenericLoad8)
REQUEST_KERNEL(ld_generic_b16, GenericLoad16)
REQUEST_KERNEL(ld_generic_b32, GenericLoad32)
REQUEST_KERNEL(ld_generic_b64, GenericLoad64)
REQUEST_KERNEL(ld_generic_b128, GenericLoad128)
REQUEST_KERNEL(st_generic_b8, GenericStore8)
REQUEST_KERNEL(st_generic_b16, GenericStore16)
REQUEST_KERNEL(st_generic_b32, GenericStore32)
REQUEST_KERNEL(st_generic_b64, GenericStore64)
REQUEST_KERNEL(st_generic_b128, GenericStore128)
