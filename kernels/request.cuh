// What every request kernel shares: one warp-wide request, made once for its data and many times for its cost.
//
// Each block takes one address pattern. It poisons shared memory, so that nothing an earlier launch left there can pass
// for data, fills it with tags through the writer's map, lets warp 0 make the request once and hands back the registers and the shared memory it left; then 8 warps make the same request
// `requests` times each between two clock reads. Nothing else runs on the multiprocessor (the launch asks for all of
// its shared memory), so cycles per request = the wavefronts of the request, down to a floor set by its width.
//
// Two things keep the compiler from merging or dropping the measured requests: every access is a volatile asm, and
// its address lies in a register that depends on `step`, an argument that is 0 but that the compiler cannot know.
#pragma once

constexpr int LANES = 32;
constexpr int WARPS = 8;
constexpr int IN_FLIGHT = 16;      // requests of one warp before it waits for the first result
constexpr unsigned POISON = 0xffffffff;  // no tag: bytes of tags stop at 239, and wider ones name far elements
constexpr int VALUE_BYTES = 512;   // per warp: what its lanes store, or the global source of its copies

struct Request {
    const int *addresses;          // [block][lane] byte offset in shared memory; -1: the lane is inactive
    const unsigned char *values;   // [block][warp][VALUE_BYTES]
    const int *writer;             // [element] byte offset at which the writer puts it
    const unsigned char *tags;     // [element][element_bytes]
    unsigned char *registers;      // [block][lane][16] out: what each lane of warp 0 received
    unsigned char *image;          // [block][image_bytes] out: shared memory after that request
    long long *clocks;             // [block][warp][2] out: before the first and after the last request
    int elements, element_bytes, image_bytes, requests;
    unsigned step;                 // 0
};

#define REQUEST_KERNEL(name, Operation)                                                                              \
    extern "C" __global__ void __launch_bounds__(LANES *WARPS)                                                       \
        name(const int *addresses, const unsigned char *values, const int *writer, const unsigned char *tags,        \
             unsigned char *registers, unsigned char *image, long long *clocks, int elements, int element_bytes,     \
             int image_bytes, int requests, unsigned step) {                                                         \
        make_request<Operation>({addresses, values, writer, tags, registers, image, clocks, elements, element_bytes, \
                                 image_bytes, requests, step});                                                      \
    }

// Defaults of an operation: lanes may be inactive, its operands are 16 bytes per lane, nothing to wait for.
struct Operation {
    static constexpr bool whole_warp = false;
    static constexpr int value_pitch = 16;
    static __device__ void wait() {}
};

template <class Op>
__device__ void make_request(const Request &request) {
    extern __shared__ __align__(1024) unsigned char shared[];
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;

    unsigned shared_bytes;
    asm volatile("mov.u32 %0, %%dynamic_smem_size;" : "=r"(shared_bytes));
    for (int word = threadIdx.x; word < shared_bytes / 4; word += blockDim.x)
        reinterpret_cast<unsigned *>(shared)[word] = POISON;
    __syncthreads();
    for (int element = threadIdx.x; element < request.elements; element += blockDim.x)
        for (int byte = 0; byte < request.element_bytes; ++byte)
            shared[request.writer[element] + byte] = request.tags[element * request.element_bytes + byte];

    const int offset = request.addresses[blockIdx.x * LANES + lane];
    const bool active = Op::whole_warp || offset >= 0;
    const unsigned base = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    const unsigned char *value = request.values + (blockIdx.x * WARPS + warp) * VALUE_BYTES + lane * Op::value_pitch;
    const Op op(value, shared, request.step);
    __syncthreads();

    if (warp == 0) {
        unsigned out[4] = {0, 0, 0, 0};
        if (active) op.issue(base + offset, out);
        Op::wait();
        for (int i = 0; i < 4; ++i)
            reinterpret_cast<unsigned *>(request.registers)[(blockIdx.x * LANES + lane) * 4 + i] = out[i];
    }
    __syncthreads();
    for (int byte = threadIdx.x; byte < request.image_bytes; byte += blockDim.x)
        request.image[static_cast<long long>(blockIdx.x) * request.image_bytes + byte] = shared[byte];

    unsigned address[IN_FLIGHT];
#pragma unroll
    for (int i = 0; i < IN_FLIGHT; ++i) address[i] = base + offset + i * request.step;
    unsigned sink = 0;
    __syncthreads();
    const long long begin = clock64();
    if (active) {
#pragma unroll 1
        for (int made = 0; made < request.requests; made += IN_FLIGHT) {
            unsigned out[IN_FLIGHT][4] = {};
#pragma unroll
            for (int i = 0; i < IN_FLIGHT; ++i) op.issue(address[i], out[i]);
#pragma unroll
            for (int i = 0; i < IN_FLIGHT; ++i) sink ^= out[i][0] ^ out[i][1] ^ out[i][2] ^ out[i][3];
        }
    }
    Op::wait();
    __syncwarp();
    const long long end = clock64();
    if (sink == 0x5bd1e995 && request.requests < 0) *request.registers = 1;  // keeps the results alive
    if (lane == 0) {
        request.clocks[(blockIdx.x * WARPS + warp) * 2] = begin;
        request.clocks[(blockIdx.x * WARPS + warp) * 2 + 1] = end;
    }
}

// An operation that only reads.
struct ReadOperation : Operation {
    __device__ ReadOperation(const unsigned char *, unsigned char *, unsigned) {}
};

// An operation that sends up to 16 bytes a lane.
struct SendOperation : Operation {
    unsigned in[4];
    __device__ SendOperation(const unsigned char *value, unsigned char *, unsigned) {
        for (int i = 0; i < 4; ++i) in[i] = reinterpret_cast<const unsigned *>(value)[i];
    }
    __device__ unsigned long long low() const { return in[0] | static_cast<unsigned long long>(in[1]) << 32; }
    __device__ unsigned long long high() const { return in[2] | static_cast<unsigned long long>(in[3]) << 32; }
};
