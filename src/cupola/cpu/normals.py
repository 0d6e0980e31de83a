"""Normal numbers of cuRAND: a kernel that makes them of uniform ones, in place, as NVIDIA's library does on a GPU.

Box and Muller's method takes two uniform numbers and gives two normal ones. The library's numbers of single precision
have the sine, the cosine and the power of two of the GPU's special function unit, whose bits are known here: an H200
gave them for 786,000 angles and 590,000 exponents, and the models below give the same for all of them. Logarithm and
square root are those that NVRTC compiles, as nvcc did for the library.
"""

from __future__ import annotations

import functools

from cupola._above import above
from cupola.cpu.compiler.facts import OWN

# The unit interpolates a quarter turn in 64 pieces (the scheme is that of Oberman and Siu, "A high-performance
# area-efficient multifunction interpolator", ARITH 2005): c0 + c1 x + c2 x^2, where x are 17 bits, c0 is in units of
# 2^-25, c1 of 2^-20 and c2 of 2^-22 of a piece. Of the square, the sum of x_i x_j 2^(i+j), only the columns from 2^-15
# are there. The sum is exact, and then cut off to 24 bits. Cosines are the sines of the complement.
_TABLE = """
    {0, 25737, -14}, {823463, 25730, -48}, {1646436, 25706, -76}, {2468414, 25668, -110},
    {3288906, 25613, -137}, {4107418, 25544, -171}, {4923453, 25459, -201}, {5736526, 25358, -229},
    {6546141, 25243, -262}, {7351816, 25112, -292}, {8153060, 24966, -322}, {8949394, 24805, -352},
    {9740335, 24629, -381}, {10525413, 24438, -410}, {11304145, 24233, -441}, {12076070, 24013, -470},
    {12840725, 23778, -497}, {13597643, 23529, -525}, {14346367, 23266, -553}, {15086452, 22989, -581},
    {15817450, 22698, -608}, {16538916, 22394, -637}, {17250422, 22076, -664}, {17951542, 21744, -688},
    {18641840, 21400, -715}, {19320916, 21042, -738}, {19988350, 20672, -763}, {20643746, 20290, -790},
    {21286703, 19895, -812}, {21916841, 19489, -839}, {22533776, 19070, -859}, {23137138, 18640, -881},
    {23726565, 18199, -904}, {24301698, 17747, -926}, {24862194, 17284, -946}, {25407711, 16811, -967},
    {25937924, 16328, -988}, {26452518, 15834, -1004}, {26951170, 15332, -1025}, {27433593, 14820, -1043},
    {27899488, 14299, -1059}, {28348583, 13769, -1074}, {28780594, 13232, -1093}, {29195273, 12686, -1107},
    {29592364, 12133, -1123}, {29971632, 11572, -1136}, {30332846, 11004, -1148}, {30675788, 10430, -1162},
    {31000253, 9849, -1172}, {31306042, 9263, -1185}, {31592974, 8671, -1196}, {31860879, 8073, -1203},
    {32109590, 7471, -1213}, {32338961, 6864, -1220}, {32548845, 6254, -1230}, {32739132, 5639, -1236},
    {32909694, 5021, -1242}, {33060432, 4400, -1247}, {33191257, 3776, -1250}, {33302087, 3151, -1258},
    {33392857, 2523, -1260}, {33463517, 1893, -1260}, {33514014, 1263, -1263}, {33544326, 632, -1265},
"""

# Powers of two likewise, for the exponential function of log-normal numbers: of the fraction, c0 in units of 2^-25, c1
# of 2^-21 and c2 of 2^-23, and a constant that rounds. A negative exponent is the complement of its bits.
_POWERS = """
    {33554435, 22713, 494}, {33919818, 22960, 501}, {34289182, 23210, 506}, {34662565, 23463, 511},
    {35040018, 23718, 518}, {35421577, 23977, 521}, {35807292, 24238, 527}, {36197209, 24502, 532},
    {36591372, 24768, 541}, {36989825, 25038, 546}, {37392616, 25311, 551}, {37799797, 25586, 559},
    {38211409, 25865, 564}, {38627504, 26147, 568}, {39048131, 26431, 577}, {39473337, 26719, 583},
    {39903173, 27010, 589}, {40337690, 27304, 596}, {40776937, 27602, 600}, {41220970, 27902, 609},
    {41669836, 28206, 615}, {42123592, 28513, 622}, {42582286, 28824, 627}, {43045977, 29138, 633},
    {43514717, 29455, 641}, {43988561, 29776, 647}, {44467565, 30100, 655}, {44951786, 30428, 661},
    {45441278, 30759, 670}, {45936101, 31094, 677}, {46436314, 31432, 686}, {46941971, 31775, 691},
    {47453135, 32121, 699}, {47969867, 32471, 705}, {48492225, 32824, 715}, {49020269, 33182, 721},
    {49554065, 33543, 730}, {50093674, 33908, 739}, {50639159, 34277, 748}, {51190582, 34651, 753},
    {51748011, 35028, 763}, {52311510, 35409, 773}, {52881146, 35795, 779}, {53456983, 36185, 787},
    {54039091, 36579, 796}, {54627538, 36977, 806}, {55222393, 37380, 813}, {55823725, 37787, 822},
    {56431607, 38198, 833}, {57046106, 38614, 842}, {57667297, 39035, 849}, {58295254, 39460, 858},
    {58930048, 39889, 870}, {59571754, 40324, 877}, {60220447, 40763, 887}, {60876205, 41207, 896},
    {61539104, 41655, 909}, {62209220, 42109, 917}, {62886634, 42568, 925}, {63571424, 43031, 938},
    {64263672, 43500, 946}, {64963458, 43973, 959}, {65670863, 44452, 969}, {66385972, 44936, 980},
"""

_SOURCE = r"""
struct piece { unsigned c0; unsigned short c1; short c2; };
__constant__ piece pieces[64] = {TABLE};
__constant__ piece powers[64] = {POWERS};

// Of x / 2^17, in units of 2^-15.
__device__ unsigned square(unsigned x) {
    unsigned long long sum = 0;
#pragma unroll
    for (int i = 10; i < 17; i++) {
        unsigned below = x & (1u << i) - (1u << 18 - i); // x_j with j < i and i + j >= 18
        if (x >> i & 1) sum += (1ull << 2 * i) + ((unsigned long long)below << i + 1);
    }
    return (unsigned)(sum >> 19);
}

// The sine of k / 2^25 turns, k < 2^23.
__device__ float quarter(unsigned k) {
    unsigned x = k & 0x1ffff;
    piece p = pieces[k >> 17];
    long long sum = ((long long)p.c0 << 12) + (long long)p.c1 * x + (long long)p.c2 * square(x);
    return __ll2float_rz(sum) * 0x1p-37f;
}

__device__ float power_of_two(float exponent) {
    if (!(exponent < 128)) return exponent + __int_as_float(0x7F800000);
    if (exponent < -126) return 0;
    int k = (int)(fabsf(exponent) * 0x1p23f);
    if (exponent < 0) k = ~k;
    unsigned x = k & 0x1ffff;
    piece p = powers[k >> 17 & 63];
    long long sum = ((long long)p.c0 << 13) + 6114 + (long long)p.c1 * x + (long long)p.c2 * square(x);
    return (float)(sum >> 15) * 0x1p-23f * __int_as_float((k >> 23) + 127 << 23);
}

// What nvcc makes of expf, but for the power of two.
__device__ float exponential(float x) {
    float part = __saturatef(__fmaf_rn(x, __int_as_float(0x3BBB989D), 0.5f));
    float shifted = __fmaf_rd(part, 252.0f, 12582913.0f), whole = __fadd_rn(shifted, -12583039.0f);
    float rest = __fmaf_rn(x, __int_as_float(0x32A57060), __fmaf_rn(x, __int_as_float(0x3FB8AA3B), -whole));
    return power_of_two(rest) * __int_as_float(__float_as_int(shifted) << 23);
}

__device__ void turn(float angle, float* sine, float* cosine) {
    unsigned k = (unsigned)(__fmul_rz(angle, 0.15915494f) * 0x1p25f), q = k >> 23 & 3, low = k & 0x7fffff;
    float a = quarter(low), b = quarter(0x7fffff - low);
    *sine = q == 0 ? a : q == 1 ? b : q == 2 ? -a : -b;
    *cosine = q == 0 ? b : q == 1 ? -a : q == 2 ? -b : a;
}

__device__ float uniform(unsigned bits) { return bits * 0x1p-32f + 0x1p-33f; }
__device__ double uniform(unsigned low, unsigned high) {
    return (low ^ (unsigned long long)high << 21) * 0x1p-53 + 0x1p-54;
}


// IS_BITS: of bits; otherwise of uniform numbers, which MRG32k3a gives.
template <bool IS_BITS, bool IS_LOG> __device__ void pair(unsigned* place, float mean, float deviation) {
    float u, angle, sine, cosine;
    if (IS_BITS) {
        u = uniform(place[0]);
        angle = place[1] * (0x1p-32f * 6.2831855f) + 0x1p-33f * 6.2831855f;
    } else {
        u = ((float*)place)[0];
        angle = ((float*)place)[1] * 6.2831855f;
    }
    float length = sqrtf(-2.0f * logf(u));
    turn(angle, &sine, &cosine);
    sine *= length, cosine *= length;
    sine = mean + deviation * sine, cosine = mean + deviation * cosine;
    ((float*)place)[0] = IS_LOG ? exponential(sine) : sine;
    ((float*)place)[1] = IS_LOG ? exponential(cosine) : cosine;
}

template <bool IS_BITS, bool IS_LOG> __device__ void pair(unsigned* place, double mean, double deviation) {
    double u, angle, sine, cosine;
    if (IS_BITS) {
        u = uniform(place[0], place[1]);
        angle = (place[2] ^ (unsigned long long)place[3] << 21) * 0x1p-52 + 0x1p-53;
    } else {
        u = ((double*)place)[0];
        angle = ((double*)place)[1] * 2.0;
    }
    double length = sqrt(-2.0 * log(u));
    sincospi(angle, &sine, &cosine);
    sine *= length, cosine *= length;
    sine = mean + deviation * sine, cosine = mean + deviation * cosine;
    ((double*)place)[0] = IS_LOG ? exp(sine) : sine;
    ((double*)place)[1] = IS_LOG ? exp(cosine) : cosine;
}

// Of one number of a Sobol sequence, by the inverse of the normal distribution, from the nearer tail.
template <int BITS, bool IS_LOG> __device__ void inverse(unsigned long long* place, double mean, double deviation) {
    unsigned long long most = ~0ull >> 64 - BITS, x = *place;
    double side = -1.4142135623730951;
    if (x > most / 2 + 1) x = most - x, side = -side;
    double u = BITS == 64 ? (x >> 11) * 0x1p-53 + 0x1p-54 : x * 0x1p-32 + 0x1p-33;
    double normal = mean + deviation * (side * erfcinv(2.0 * u));
    *(double*)place = IS_LOG ? exp(normal) : normal;
}

#define INVERSE(name, bits, is_log)                                                                      \
    extern "C" __global__ void name(unsigned long long* numbers, unsigned long long count, double mean,  \
                                    double deviation) {                                                  \
        unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;                \
        for (; i < count; i += gridDim.x * (unsigned long long)blockDim.x)                               \
            inverse<bits, is_log>(numbers + i, mean, deviation);                                         \
    }
INVERSE(sobol32_double, 32, false)
INVERSE(sobol32_double_log, 32, true)
INVERSE(sobol64_double, 64, false)
INVERSE(sobol64_double_log, 64, true)

#define KERNEL(name, number, is_bits, is_log)                                                          \
    extern "C" __global__ void name(unsigned* numbers, unsigned long long pairs, number mean, number deviation) { \
        unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;              \
        for (; i < pairs; i += gridDim.x * (unsigned long long)blockDim.x)                             \
            pair<is_bits, is_log>(numbers + i * (2 * sizeof(number) / 4), mean, deviation);            \
    }
KERNEL(bits_float, float, true, false)
KERNEL(bits_float_log, float, true, true)
KERNEL(bits_double, double, true, false)
KERNEL(bits_double_log, double, true, true)
KERNEL(uniform_float, float, false, false)
KERNEL(uniform_float_log, float, false, true)
KERNEL(uniform_double, double, false, false)
KERNEL(uniform_double_log, double, false, true)
"""


@functools.cache
def kernels() -> bytes:
    """PTX of the kernels, for any device.

    Raises
    ------
    ImportError, RuntimeError
        NVRTC is missing, or cannot compile them.
    """
    options = above("ProgramOptions")(arch="sm_75", name="normals.cu")
    source = _SOURCE.replace("TABLE", _TABLE).replace("POWERS", _POWERS)
    return bytes(above("Program")(source, "c++", options).compile("ptx").code).rstrip(b"\0") + OWN.encode()
