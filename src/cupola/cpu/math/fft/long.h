/* Long transforms, each in pieces that fit into a processor's cache and can be shared out to threads. pocketfft itself goes
 * over all numbers again and again, on one thread and without vectors, since it shares out only whole transforms.
 *
 * With n = rows * columns, the numbers are a matrix in the order of rows. Its columns are transformed, each number is
 * turned by its row times its column, and the rows are transformed: that is the result, in the order of columns (the
 * four-step algorithm; D. H. Bailey, FFTs in External or Hierarchical Memory, 1990). pocketfft transforms the columns
 * and the rows, some neighbors at once. Real numbers of even length are transformed as half as many complex ones.
 * It is included behind pocketfft, which is header files, too. */
#ifndef CUPOLA_CPU_MATH_FFT_LONG_H
#define CUPOLA_CPU_MATH_FFT_LONG_H

#include <algorithm>
#include <atomic>
#include <cmath>
#include <complex>
#include <memory>
#include <mutex>

#include "transform.h"

namespace long_transform {

namespace detail = pocketfft::detail;

constexpr size_t LONG = 1 << 14;         /* numbers from which on it pays */
constexpr size_t FEW = 4;                /* transforms that pocketfft would not do together */
constexpr size_t SHARE = 1 << 13;        /* numbers that are worth a thread */
constexpr size_t NEIGHBORS = 8;          /* columns or rows at once: those of complex floats fill a cache line */
constexpr size_t LEAST_ROWS = 64;        /* or there is too little to share out */
constexpr size_t KEPT_BYTES = 64u << 20; /* of memory that is kept for the next transform */

/* Have `threads` threads call `work` for each of `count` pieces. */
template <typename Work> void share(size_t threads, size_t count, const Work &work) {
    std::atomic<size_t> next{0};
    detail::threading::thread_map(std::min(threads, count), [&] {
        /* What pocketfft is asked for from here on is for this thread alone. */
        detail::threading::thread_id() = 0;
        detail::threading::num_threads() = 1;
        work([&](size_t &piece) { return (piece = next++) < count; });
    });
}

/* Share out the numbers from 0 to `count`: `work(begin, end)`. */
template <typename Work> void share_range(size_t threads, size_t count, const Work &work) {
    share(threads, (count + SHARE - 1) / SHARE, [&](auto take) {
        for (size_t piece; take(piece);) work(piece * SHARE, std::min(count, (piece + 1) * SHARE));
    });
}

/* exp(2 pi i k / n) in double precision, from the table that was made last, if that is the one. */
using Roots = detail::sincos_2pibyn<double>;
inline std::shared_ptr<const Roots> roots(size_t n) {
    static auto &mutex = *new std::mutex; /* never destroyed: a stream may still be at work when the process ends */
    static auto &last = *new std::shared_ptr<const Roots>;
    static size_t length;
    std::lock_guard<std::mutex> lock(mutex);
    if (length != n) {
        last = std::make_shared<const Roots>(n);
        length = n;
    }
    return last;
}

/* The largest divisor of a number that is not above its root. */
inline size_t rows_of(size_t n) {
    size_t rows = static_cast<size_t>(std::sqrt(static_cast<double>(n)));
    while (n % rows) rows--;
    return rows;
}

/* The matrix, in strips of neighboring columns: numbers that are transformed together lie together. */
struct Strips {
    size_t rows, columns, count;
    explicit Strips(size_t n) : rows(rows_of(n)), columns(n / rows), count((columns + NEIGHBORS - 1) / NEIGHBORS) {}
    size_t first(size_t strip) const { return strip * NEIGHBORS; }
    size_t width(size_t strip) const { return std::min(NEIGHBORS, columns - first(strip)); }
    size_t start(size_t strip) const { return first(strip) * rows; }
};

/* What the columns of a strip are turned by. */
template <typename T>
void write_turns(const Roots &roots, size_t step, const Strips &all, size_t strip, std::complex<T> *to) {
    for (size_t row = 0; row < all.rows; row++)
        for (size_t i = 0; i < all.width(strip); i++) {
            const auto turn = roots[row * (all.first(strip) + i) * step];
            *to++ = {T(turn.r), T(turn.i)};
        }
}

/* The turns of a whole matrix, those of the last transform if they are the same. Null: they would be too large. */
template <typename T>
std::shared_ptr<const detail::arr<std::complex<T>>> turns_of(size_t n, const Roots &roots, size_t step,
                                                             const Strips &all, size_t threads) {
    using Table = detail::arr<std::complex<T>>;
    static auto &mutex = *new std::mutex;
    static auto &last = *new std::shared_ptr<const Table>;
    if (n * sizeof(std::complex<T>) > KEPT_BYTES) return nullptr;
    std::lock_guard<std::mutex> lock(mutex);
    if (!last || last->size() != n) {
        auto made = std::make_shared<Table>(n);
        share(threads, all.count, [&](auto take) {
            for (size_t strip; take(strip);) write_turns(roots, step, all, strip, made->data() + all.start(strip));
        });
        last = made;
    }
    return last;
}

/* Memory for one transform, kept for the next one unless it is too large, or two run at once. */
template <typename T> class Workspace {
  public:
    explicit Workspace(size_t count) : lock(mutex(), std::try_to_lock) {
        const bool is_kept = lock.owns_lock() && count * sizeof(std::complex<T>) <= KEPT_BYTES;
        detail::arr<std::complex<T>> &memory = is_kept ? kept() : own;
        if (memory.size() < count) memory.resize(count);
        data = memory.data();
    }
    std::complex<T> *data;

  private:
    static std::mutex &mutex() {
        static auto &made = *new std::mutex;
        return made;
    }
    static detail::arr<std::complex<T>> &kept() {
        static auto &made = *new detail::arr<std::complex<T>>;
        return made;
    }
    std::unique_lock<std::mutex> lock;
    detail::arr<std::complex<T>> own;
};

/* Is it better done so than by pocketfft? `n` counts complex numbers. */
inline bool is_taken(size_t n, size_t lines, size_t threads) {
    return n >= LONG && (lines < FEW || 2 * lines <= threads) && rows_of(n) >= LEAST_ROWS;
}

/* Transform `count` neighbors: number k of neighbor i is at k * count + i. */
template <typename T> void transform_neighbors(size_t n, size_t count, bool is_forward, std::complex<T> *data) {
    constexpr ptrdiff_t size = sizeof(std::complex<T>);
    const pocketfft::stride_t strides{static_cast<ptrdiff_t>(count) * size, size};
    pocketfft::c2c<T>({n, count}, strides, strides, {0}, is_forward, data, data, T(1));
}

/* From the numbers that `load` returns to `store`. `roots` are those of n * `step`. All loads come before the first
 * store. */
template <typename T, typename Load, typename Store>
void transform(size_t n, bool is_forward, size_t threads, const Roots &roots, size_t step, const Load &load,
               const Store &store) {
    using complex = std::complex<T>;
    const Strips all(n);
    threads = std::max(size_t(1), std::min(threads, n / SHARE));
    const auto table = turns_of<T>(n, roots, step, all, threads);
    Workspace<T> matrix(n);
    share(threads, all.count, [&](auto take) {
        detail::arr<complex> own(table ? 0 : all.rows * NEIGHBORS);
        for (size_t strip; take(strip);) {
            const size_t width = all.width(strip);
            complex *here = matrix.data + all.start(strip);
            for (size_t row = 0; row < all.rows; row++)
                for (size_t i = 0; i < width; i++)
                    here[row * width + i] = load(row * all.columns + all.first(strip) + i);
            transform_neighbors(all.rows, width, is_forward, here);
            if (!table) write_turns(roots, step, all, strip, own.data());
            const complex *turns = table ? table->data() + all.start(strip) : own.data();
            for (size_t i = 0; i < all.rows * width; i++) {
                const T re = turns[i].real(), im = is_forward ? -turns[i].imag() : turns[i].imag();
                here[i] = {here[i].real() * re - here[i].imag() * im, here[i].real() * im + here[i].imag() * re};
            }
        }
    });
    share(threads, (all.rows + NEIGHBORS - 1) / NEIGHBORS, [&](auto take) {
        detail::arr<complex> buffer(all.columns * NEIGHBORS);
        for (size_t piece; take(piece);) {
            const size_t first = piece * NEIGHBORS, count = std::min(NEIGHBORS, all.rows - first);
            for (size_t strip = 0; strip < all.count; strip++) {
                const size_t width = all.width(strip);
                const complex *here = matrix.data + all.start(strip) + first * width;
                complex *there = buffer.data() + all.first(strip) * count;
                for (size_t i = 0; i < count; i++)
                    for (size_t column = 0; column < width; column++)
                        there[column * count + i] = here[i * width + column];
            }
            transform_neighbors(all.columns, count, is_forward, buffer.data());
            for (size_t column = 0; column < all.columns; column++)
                for (size_t i = 0; i < count; i++) store(column * all.rows + first + i, buffer[column * count + i]);
        }
    });
}

template <typename T> T &at(const void *start, ptrdiff_t stride, size_t index) {
    return *reinterpret_cast<T *>(const_cast<char *>(static_cast<const char *>(start)) +
                                  stride * static_cast<ptrdiff_t>(index));
}

template <typename T>
void run_complex(const struct transform &t, const char *from, char *to, ptrdiff_t from_stride, ptrdiff_t to_stride) {
    using complex = std::complex<T>;
    const size_t n = t.shape[1];
    const auto all_roots = roots(n);
    transform<T>(
        n, t.is_forward, t.threads, *all_roots, 1, [=](size_t i) { return at<const complex>(from, from_stride, i); },
        [=](size_t i, complex z) { at<complex>(to, to_stride, i) = z; });
}

/* The even numbers are the real parts, the odd ones the imaginary parts of a transform of half the length; afterwards
 * both are told apart by their symmetries. */
template <typename T>
void run_from_real(const struct transform &t, const char *from, char *to, ptrdiff_t from_stride, ptrdiff_t to_stride) {
    using complex = std::complex<T>;
    const size_t n = t.shape[1], half = n / 2;
    const auto all_roots = roots(n);
    const auto x = [=](size_t i) { return at<const T>(from, from_stride, i); };
    const auto z = [=](size_t i) -> complex & { return at<complex>(to, to_stride, i); };
    transform<T>(
        half, true, t.threads, *all_roots, 2, [=](size_t i) { return complex(x(2 * i), x(2 * i + 1)); },
        [=](size_t i, complex value) { z(i) = value; });
    share_range(t.threads, half / 2, [&](size_t begin, size_t end) {
        for (size_t k = begin + 1; k <= end; k++) {
            const complex a = z(k), b = std::conj(z(half - k));
            const complex even = T(0.5) * (a + b), odd = T(0.5) * (a - b);
            const auto turn = (*all_roots)[k]; /* conjugated, and by -i for `odd` */
            const T re = T(turn.r), im = T(turn.i);
            const complex turned(odd.imag() * re - odd.real() * im, -odd.real() * re - odd.imag() * im);
            z(k) = even + turned;
            z(half - k) = std::conj(even - turned);
        }
    });
    const complex first = z(0);
    z(0) = first.real() + first.imag();
    z(half) = first.real() - first.imag();
}

/* The same backwards. */
template <typename T>
void run_to_real(const struct transform &t, const char *from, char *to, ptrdiff_t from_stride, ptrdiff_t to_stride) {
    using complex = std::complex<T>;
    const size_t n = t.shape[1], half = n / 2;
    const auto all_roots = roots(n);
    const auto z = [=](size_t i) { return at<const complex>(from, from_stride, i); };
    const auto x = [=](size_t i) -> T & { return at<T>(to, to_stride, i); };
    transform<T>(
        half, false, t.threads, *all_roots, 2,
        [&](size_t k) {
            if (k == 0) return complex(z(0).real() + z(half).real(), z(0).real() - z(half).real());
            const complex a = z(k), b = std::conj(z(half - k)), even = a + b, odd = a - b;
            const auto turn = (*all_roots)[k]; /* and by i for `odd` */
            return even +
                   complex(-odd.real() * turn.i - odd.imag() * turn.r, odd.real() * turn.r - odd.imag() * turn.i);
        },
        [=](size_t i, complex value) {
            x(2 * i) = value.real();
            x(2 * i + 1) = value.imag();
        });
}

/* Do a transform, one of the batch after the other. False: it is better left to pocketfft, and nothing happened. */
template <typename T> bool run(const struct transform &t) {
    if (t.dimensions != 2) return false;
    const size_t n = t.shape[1];
    if (t.kind != COMPLEX_TO_COMPLEX && (n % 2 || !t.is_forward != (t.kind == COMPLEX_TO_REAL))) return false;
    if (!is_taken(t.kind == COMPLEX_TO_COMPLEX ? n : n / 2, t.shape[0], t.threads)) return false;
    for (size_t i = 0; i < t.shape[0]; i++) {
        const char *from = &at<const char>(t.from, t.from_stride[0], i);
        char *to = &at<char>(t.to, t.to_stride[0], i);
        switch (t.kind) {
            case COMPLEX_TO_COMPLEX: run_complex<T>(t, from, to, t.from_stride[1], t.to_stride[1]); break;
            case REAL_TO_COMPLEX: run_from_real<T>(t, from, to, t.from_stride[1], t.to_stride[1]); break;
            case COMPLEX_TO_REAL: run_to_real<T>(t, from, to, t.from_stride[1], t.to_stride[1]); break;
        }
    }
    return true;
}

} // namespace long_transform

#endif
