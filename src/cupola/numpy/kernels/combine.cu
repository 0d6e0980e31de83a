// Combining a value with one in memory that other threads may change meanwhile, by compare and swap.

template <int SIZE> struct word;
template <> struct word<2> { typedef unsigned short type; };
template <> struct word<4> { typedef unsigned int type; };
template <> struct word<8> { typedef unsigned long long type; };

// What the hardware adds by itself; the two's complement makes signed and unsigned numbers one.
template <typename M> __device__ void add_there(M* place, M value) {
    if constexpr (is_floating<M>) atomicAdd(place, value);
    else if constexpr (sizeof(M) == 4) atomicAdd((unsigned int*)place, (unsigned int)value);
    else atomicAdd((unsigned long long*)place, (unsigned long long)value);
}

template <typename HOW, typename M, typename T> __device__ void combine(M* place, T value) {
    if constexpr (sizeof(M) == 1) {
        unsigned long long address = (unsigned long long)place;
        unsigned int* around = (unsigned int*)(address & ~3ull);
        int shift = (address & 3) * 8;
        unsigned int seen = *(volatile unsigned int*)around, expected;
        do {
            expected = seen;
            unsigned char there = expected >> shift;
            M made = HOW::of(*(M*)&there, value);
            unsigned int wanted = (expected & ~(0xffu << shift)) | (unsigned int)*(unsigned char*)&made << shift;
            seen = atomicCAS(around, expected, wanted);
        } while (seen != expected);
    } else {
        typedef typename word<sizeof(M)>::type bits;
        bits seen = *(volatile bits*)place, expected;
        do {
            expected = seen;
            M there = *(M*)&expected, made = HOW::of(there, value);
            seen = atomicCAS((bits*)place, expected, *(bits*)&made);
        } while (seen != expected);
    }
}
