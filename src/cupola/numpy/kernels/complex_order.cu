// The order of sorted complex numbers, behind order.cu: by the real parts, then by the imaginary ones. Those of which a part is NaN
// come last: first where only the imaginary part is, then where only the real one is, by the other part among themselves.
template <typename R> __device__ bool no_number(complex_number<R> a) { return is_nan(a); }
template <typename R> __device__ int nan_parts(complex_number<R> a) { return 2 * (a.re != a.re) + (a.im != a.im); }
template <typename R> __device__ bool precedes(complex_number<R> a, complex_number<R> b) {
    int one = nan_parts(a), other = nan_parts(b);
    if (one != other) return one < other;
    if (one < 2 && a.re != b.re) return a.re < b.re;
    return a.im < b.im;
}
