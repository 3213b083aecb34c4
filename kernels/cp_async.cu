// cp.async: copies from global into shared memory that pass by the registers. The source is contiguous: lane i reads
// the i-th 4, 8 or 16 bytes.
//
// Predicted wavefronts, where lanes(G) is the largest number of active lanes of G that write to one bank (two lanes that
// write the same chunk count twice):
//   .ca 4 bytes    lanes(0-31)
//   .ca 8 bytes    lanes(0-15) + lanes(16-31)
//   .ca 16 bytes   lanes(0-7) + lanes(8-15) + lanes(16-23) + lanes(24-31)
//   .cg 16 bytes   another path, which writes whole 128-byte rows: every (group of 8 lanes, aligned 128-byte row) is one
//                  row write; those whose row number agrees mod 4 queue up, and the longest queue sets the cycles.
#include "request.cuh"

template <int BYTES, bool CACHE_L1>
struct Copy : Operation {
    static constexpr int value_pitch = BYTES;
    unsigned long long source;
    __device__ Copy(const unsigned char *value, unsigned char *, unsigned) : source(__cvta_generic_to_global(value)) {}
    __device__ void issue(unsigned address, unsigned (&)[4]) const {
        if constexpr (CACHE_L1)
            asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(address), "l"(source), "n"(BYTES) : "memory");
        else
            asm volatile("cp.async.cg.shared.global [%0], [%1], %2;" ::"r"(address), "l"(source), "n"(BYTES) : "memory");
    }
    static __device__ void wait() { asm volatile("cp.async.wait_all;" ::: "memory"); }
};

using CopyCa4 = Copy<4, true>;
using CopyCa8 = Copy<8, true>;
using CopyCa16 = Copy<16, true>;
using CopyCg16 = Copy<16, false>;

REQUEST_KERNEL(cp_async_ca_4, CopyCa4)
REQUEST_KERNEL(cp_async_ca_8, CopyCa8)
REQUEST_KERNEL(cp_async_ca_16, CopyCa16)
REQUEST_KERNEL(cp_async_cg_16, CopyCg16)
