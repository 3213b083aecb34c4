// Shared stores of 1 to 16 bytes a lane.
//
// Predicted wavefronts, where deg(G) is the largest number of distinct 4-byte words that the lanes G touch in one bank:
//   1, 2, 4 bytes   deg(lanes 0-31); several lanes storing into one word cost nothing extra
//   8 bytes         deg(0-15) + deg(16-31)
//   16 bytes        deg(0-7) + deg(8-15) + deg(16-23) + deg(24-31)
// Stores never merge groups. Cycles per request: the wavefronts, and at least 1, 2, 4 for 4, 8, 16 bytes a lane.
#include "request.cuh"

struct Store8 : SendOperation {
    using SendOperation::SendOperation;
    __device__ void issue(unsigned address, unsigned (&)[4]) const {
        asm volatile("st.volatile.shared.u8 [%0], %1;" ::"r"(address), "r"(in[0]) : "memory");
    }
};

struct Store16 : SendOperation {
    using SendOperation::SendOperation;
    __device__ void issue(unsigned address, unsigned (&)[4]) const {
        asm volatile("{ .reg .u16 h; cvt.u16.u32 h, %1; st.volatile.shared.u16 [%0], h; }"
                     ::"r"(address), "r"(in[0]) : "memory");
    }
};

struct Store32 : SendOperation {
    using SendOperation::SendOperation;
    __device__ void issue(unsigned address, unsigned (&)[4]) const {
        asm volatile("st.volatile.shared.u32 [%0], %1;" ::"r"(address), "r"(in[0]) : "memory");
    }
};

struct Store64 : SendOperation {
    using SendOperation::SendOperation;
    __device__ void issue(unsigned address, unsigned (&)[4]) const {
        asm volatile("st.volatile.shared.b64 [%0], %1;" ::"r"(address), "l"(low()) : "memory");
    }
};

struct Store32x2 : SendOperation {
    using SendOperation::SendOperation;
    __device__ void issue(unsigned address, unsigned (&)[4]) const {
        asm volatile("st.volatile.shared.v2.b32 [%0], {%1, %2};" ::"r"(address), "r"(in[0]), "r"(in[1]) : "memory");
    }
};

struct Store32x4 : SendOperation {
    using SendOperation::SendOperation;
    __device__ void issue(unsigned address, unsigned (&)[4]) const {
        asm volatile("st.volatile.shared.v4.b32 [%0], {%1, %2, %3, %4};"
                     ::"r"(address), "r"(in[0]), "r"(in[1]), "r"(in[2]), "r"(in[3]) : "memory");
    }
};

struct Store64x2 : SendOperation {
    using SendOperation::SendOperation;
    __device__ void issue(unsigned address, unsigned (&)[4]) const {
        asm volatile("st.volatile.shared.v2.b64 [%0], {%1, %2};" ::"r"(address), "l"(low()), "l"(high()) : "memory");
    }
};

REQUEST_KERNEL(st_shared_b8, Store8)
REQUEST_KERNEL(st_shared_b16, Store16)
REQUEST_KERNEL(st_shared_b32, Store32)
REQUEST_KERNEL(st_shared_b64, Store64)
REQUEST_KERNEL(st_shared_v2_b32, Store32x2)
REQUEST_KERNEL(st_shared_v4_b32, Store32x4)
REQUEST_KERNEL(st_shared_v2_b64, Store64x2)
