/* Transforms by pocketfft, behind a function of C. */
#include "transform.h"

#include <complex>
#include <new>

#define POCKETFFT_CACHE_SIZE 16 /* plans are made again for each call otherwise */
#include "pocketfft/pocketfft_hdronly.h"
#include "long.h"

template <typename T> static void run(const transform &t) {
    if (long_transform::run<T>(t)) return;
    using complex = std::complex<T>;
    const pocketfft::shape_t shape(t.shape, t.shape + t.dimensions);
    const pocketfft::stride_t from(t.from_stride, t.from_stride + t.dimensions);
    const pocketfft::stride_t to(t.to_stride, t.to_stride + t.dimensions);
    pocketfft::shape_t axes;
    for (size_t axis = 1; axis < t.dimensions; axis++) axes.push_back(axis);
    const bool forward = t.is_forward;
    switch (t.kind) {
        case COMPLEX_TO_COMPLEX:
            return pocketfft::c2c(shape, from, to, axes, forward, static_cast<const complex *>(t.from),
                                  static_cast<complex *>(t.to), T(1), t.threads);
        case REAL_TO_COMPLEX:
            return pocketfft::r2c(shape, from, to, axes, forward, static_cast<const T *>(t.from),
                                  static_cast<complex *>(t.to), T(1), t.threads);
        case COMPLEX_TO_REAL:
            return pocketfft::c2r(shape, from, to, axes, forward, static_cast<const complex *>(t.from),
                                  static_cast<T *>(t.to), T(1), t.threads);
    }
}

extern "C" __attribute__((visibility("default"))) int cupola_transform(const transform *t) {
    try {
        t->is_double ? run<double>(*t) : run<float>(*t);
        return 0;
    } catch (const std::bad_alloc &) {
        return 1;
    } catch (...) {
        return 2;
    }
}
