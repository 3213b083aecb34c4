// Shared loads of 1 to 16 bytes a lane.
//
// Predicted wavefronts, where deg(G) is the largest number of distinct 4-byte words that the lanes G want of one bank:
//   1, 2, 4 bytes   deg(lanes 0-31)
//   8 bytes         deg(0-15) + deg(16-31)
//   16 bytes        deg(0-7) + deg(8-15) + deg(16-23) + deg(24-31)
// and, where lanes i and i^1 (or i and i^2) want the same address for every i: 8 bytes deg(0-31), 16 bytes
// deg(0-15) + deg(16-31). Cycles per request: the wavefronts, and at least one for each group.
#include "request.cuh"

struct Load8 : ReadOperation {
    using ReadOperation::ReadOperation;
    __device__ void issue(unsigned address, unsigned (&out)[4]) const {
        asm volatile("ld.volatile.shared.u8 %0, [%1];" : "=r"(out[0]) : "r"(address) : "memory");
    }
};

struct Load16 : ReadOperation {
    using ReadOperation::ReadOperation;
    __device__ void issue(unsigned address, unsigned (&out)[4]) const {
        asm volatile("{ .reg .u16 h; ld.volatile.shared.u16 h, [%1]; cvt.u32.u16 %0, h; }"
                     : "=r"(out[0]) : "r"(address) : "memory");
    }
};

struct Load32 : ReadOperation {
    using ReadOperation::ReadOperation;
    __device__ void issue(unsigned address, unsigned (&out)[4]) const {
        asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(out[0]) : "r"(address) : "memory");
    }
};

struct Load64 : ReadOperation {
    using ReadOperation::ReadOperation;
    __device__ void issue(unsigned address, unsigned (&out)[4]) const {
        asm volatile("{ .reg .b64 d; ld.volatile.shared.b64 d, [%2]; mov.b64 {%0, %1}, d; }"
                     : "=r"(out[0]), "=r"(out[1]) : "r"(address) : "memory");
    }
};

struct Load32x2 : ReadOperation {
    using ReadOperation::ReadOperation;
    __device__ void issue(unsigned address, unsigned (&out)[4]) const {
        asm volatile("ld.volatile.shared.v2.b32 {%0, %1}, [%2];"
                     : "=r"(out[0]), "=r"(out[1]) : "r"(address) : "memory");
    }
};

struct Load32x4 : ReadOperation {
    using ReadOperation::ReadOperation;
    __device__ void issue(unsigned address, unsigned (&out)[4]) const {
        asm volatile("ld.volatile.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3]) : "r"(address) : "memory");
    }
};

struct Load64x2 : ReadOperation {
    using ReadOperation::ReadOperation;
    __device__ void issue(unsigned address, unsigned (&out)[4]) const {
        asm volatile("{ .reg .b64 d, e; ld.volatile.shared.v2.b64 {d, e}, [%4];"
                     " mov.b64 {%0, %1}, d; mov.b64 {%2, %3}, e; }"
                     : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3]) : "r"(address) : "memory");
    }
};

REQUEST_KERNEL(ld_shared_b8, Load8)
REQUEST_KERNEL(ld_shared_b16, Load16)
REQUEST_KERNEL(ld_shared_b32, Load32)
REQUEST_KERNEL(ld_shared_b64, Load64)
REQUEST_KERNEL(ld_shared_v2_b32, Load32x2)
REQUEST_KERNEL(ld_shared_v4_b32, Load32x4)
REQUEST_KERNEL(ld_shared_v2_b64, Load64x2)
