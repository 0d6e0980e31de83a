// The order of sorted elements: NaN comes last.
template <typename V> __device__ bool no_number(V a) { return a != a; }
template <typename R> struct complex_number;
template <typename V> __device__ bool precedes(V a, V b) { return a < b || (no_number(b) && !no_number(a)); }
