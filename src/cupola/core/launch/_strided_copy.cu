// The source of _strided_copy.ptx, which ships: so that copies need no compiler. Made by NVRTC 13 for compute_75; then
// .version 6.4 and .target sm_52 are written into its head, since nothing in it is newer.
//
// Each thread copies elements of one width. Their places follow from the number of the element in row-major order.
struct Layout {
    unsigned long long count;
    long long extent[8], to[8], from[8];  // of the dimensions, outermost first; steps in bytes
    int rank;
};

template <typename T> __device__ void copy(char* target, const char* source, const Layout& layout) {
    unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < layout.count; i += step) {
        unsigned long long rest = i;
        long long to = 0, from = 0;
#pragma unroll 1
        for (int axis = layout.rank - 1; axis >= 0; axis--) {
            unsigned long long extent = layout.extent[axis], place;
            if ((rest | extent) >> 32) {
                place = rest % extent;
                rest /= extent;
            } else {  // 32 bits divide in a fifth of the time
                unsigned narrow = (unsigned)rest, by = (unsigned)extent;
                place = narrow % by;
                rest = narrow / by;
            }
            to += (long long)place * layout.to[axis];
            from += (long long)place * layout.from[axis];
        }
        *(T*)(target + to) = *(const T*)(source + from);
    }
}

#define COPY(NAME, TYPE) \
    extern "C" __global__ void NAME(char* target, const char* source, const __grid_constant__ Layout layout) { \
        copy<TYPE>(target, source, layout); \
    }
COPY(copy1, unsigned char)
COPY(copy2, unsigned short)
COPY(copy4, unsigned int)
COPY(copy8, unsigned long long)
COPY(copy16, uint4)
