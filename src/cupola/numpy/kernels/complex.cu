// Complex numbers, and their functions with the special values of C. Behind preamble.cu where an expression has them.

template <typename R> struct complex_number {
    R re, im;
    complex_number() = default;
    __device__ complex_number(R re, R im = 0) : re(re), im(im) {}
    template <typename Q> __device__ explicit complex_number(const complex_number<Q>& other) : re(other.re), im(other.im) {}
    __device__ complex_number operator-() const { return {-re, -im}; }
    friend __device__ complex_number operator+(complex_number a, complex_number b) { return {a.re + b.re, a.im + b.im}; }
    friend __device__ complex_number operator-(complex_number a, complex_number b) { return {a.re - b.re, a.im - b.im}; }
    friend __device__ complex_number operator*(complex_number a, complex_number b) {
        return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
    }
    // Smith's method, which does not overflow where the quotient does not.
    friend __device__ complex_number operator/(complex_number a, complex_number b) {
        if (fabs(b.re) >= fabs(b.im)) {
            if (b.re == 0 && b.im == 0) return {a.re / fabs(b.re), a.im / fabs(b.re)};
            R ratio = b.im / b.re, scale = R(1) / (b.re + b.im * ratio);
            return {(a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale};
        }
        R ratio = b.re / b.im, scale = R(1) / (b.im + b.re * ratio);
        return {(a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale};
    }
    friend __device__ bool operator==(complex_number a, complex_number b) { return a.re == b.re && a.im == b.im; }
    friend __device__ bool operator!=(complex_number a, complex_number b) { return !(a == b); }
    // By the real part, then by the imaginary one; false where one of them is needed and is no number.
    friend __device__ bool operator<(complex_number a, complex_number b) {
        return a.re < b.re ? a.im == a.im && b.im == b.im : a.re == b.re && a.im < b.im;
    }
    friend __device__ bool operator<=(complex_number a, complex_number b) {
        return a.re < b.re ? a.im == a.im && b.im == b.im : a.re == b.re && a.im <= b.im;
    }
    friend __device__ bool operator>(complex_number a, complex_number b) { return b < a; }
    friend __device__ bool operator>=(complex_number a, complex_number b) { return b <= a; }
};

#define INFINITY_OF(x) (decltype(x)(__longlong_as_double(0x7ff0000000000000)))
#define NAN_OF(x) (decltype(x)(__longlong_as_double(0x7ff8000000000000)))

template <typename T> __device__ T conjugate(T a) { return T(a.re, -a.im); }
template <typename T> __device__ bool is_nan(T a) { return a.re != a.re || a.im != a.im; }
template <typename T> __device__ bool is_true(T a) { return a.re != 0 || a.im != 0; }
template <typename T> __device__ T complex_rint(T a) { return T(rint(a.re), rint(a.im)); }
template <typename T> __device__ T times_i(T a) { return T(-a.im, a.re); }
template <typename T> __device__ T over_i(T a) { return T(a.im, -a.re); }
template <typename T> __device__ T scaled(T a, double by) { return T(a.re * by, a.im * by); }

template <typename T> __device__ T complex_sign(T a) {
    if (isinf(a.re) != isinf(a.im) && !is_nan(a))
        return isinf(a.re) ? T(copysign(decltype(a.re)(1), a.re), 0) : T(0, copysign(decltype(a.re)(1), a.im));
    auto size = hypot(a.re, a.im);
    return size == 0 ? T(0) : T(a.re / size, a.im / size);
}

template <typename T> __device__ T complex_exp(T a) {
    if (a.im == 0) return T(exp(a.re), a.im);
    if (isinf(a.re) && !isfinite(a.im)) return a.re < 0 ? T(0, 0) : T(a.re, a.im - a.im);
    if (a.re < 0 && isinf(a.re)) return T(copysign(decltype(a.re)(0), cos(a.im)), copysign(decltype(a.re)(0), sin(a.im)));
    auto half = exp(a.re / 2), size = exp(a.re);
    if (isinf(size) && !isinf(a.re)) return T(half * cos(a.im) * half, half * sin(a.im) * half);
    return T(size * cos(a.im), size * sin(a.im));
}

template <typename T> __device__ T complex_expm1(T a) {
    if (!isfinite(a.re) || !isfinite(a.im)) {
        T e = complex_exp(a);
        return T(e.re - 1, e.im);
    }
    auto half = sin(a.im / 2);
    return T(expm1(a.re) * cos(a.im) - 2 * half * half, a.im == 0 ? a.im : exp(a.re) * sin(a.im));
}

template <typename T> __device__ T complex_log(T a) {
    auto large = fabs(a.re), little = fabs(a.im), angle = atan2(a.im, a.re);
    if (large < little) {
        auto other = large;
        large = little, little = other;
    }
    if (large > 0.5 && large < 1.5 && little < 1.5) return T(log1p((large - 1) * (large + 1) + little * little) / 2, angle);
    return T(log(hypot(a.re, a.im)), angle);
}

template <typename T> __device__ T complex_log1p(T a) {
    if (fabs(a.re) < 0.5 && fabs(a.im) < 0.5)
        return T(log1p(a.re * (2 + a.re) + a.im * a.im) / 2, atan2(a.im, 1 + a.re));
    return T(log(hypot(1 + a.re, a.im)), atan2(a.im, 1 + a.re));
}

template <typename T> __device__ T complex_sqrt(T a) {
    auto x = a.re, y = a.im;
    if (isinf(y)) return T(fabs(y), y);
    if (x != x) return T(x, x);
    if (isinf(x)) return x > 0 ? T(x, y != y ? y : copysign(decltype(x)(0), y)) : T(fabs(y - y), copysign(x, y));
    if (x == 0 && y == 0) return T(0, y);
    auto scale = fabs(x) > 1e30 || fabs(y) > 1e30 ? decltype(x)(0.25) : decltype(x)(1), back = scale < 1 ? decltype(x)(2) : decltype(x)(1);
    x *= scale, y *= scale;
    auto t = sqrt((fabs(x) + hypot(x, y)) / 2);
    return x >= 0 ? T(t * back, y / (2 * t) * back) : T(fabs(y) / (2 * t) * back, copysign(t * back, y));
}

template <typename T> __device__ T complex_sinh(T a) {
    auto x = a.re, y = a.im;
    if (y == 0) return T(sinh(x), y);
    if (x == 0) return isfinite(y) ? T(copysign(decltype(x)(0), x * cos(y)), sin(y)) : T(x, y - y);
    if (isinf(x)) return isfinite(y) ? T(x * cos(y), fabs(x) * sin(y)) : T(x, y - y);
    if (!isfinite(y)) return T(y - y, y - y);
    return T(sinh(x) * cos(y), cosh(x) * sin(y));
}

template <typename T> __device__ T complex_cosh(T a) {
    auto x = a.re, y = a.im;
    if (y == 0) return T(cosh(x), x != x ? y : x * y == 0 ? x * y : copysign(decltype(x)(0), x) * copysign(decltype(x)(1), y));
    if (x == 0) return isfinite(y) ? T(cos(y), x * sin(y)) : T(y - y, decltype(x)(0));
    if (isinf(x)) return isfinite(y) ? T(fabs(x) * cos(y), x * sin(y)) : T(fabs(x), y - y);
    if (!isfinite(y)) return T(y - y, y - y);
    return T(cosh(x) * cos(y), sinh(x) * sin(y));
}

template <typename T> __device__ T complex_tanh(T a) {
    auto x = a.re, y = a.im;
    if (x != x) return T(x, y == 0 ? y : x);
    if (isinf(x)) return T(copysign(decltype(x)(1), x), copysign(decltype(x)(0), y)); // of the standard, not of sin(2 * y) as in C
    if (!isfinite(y)) return T(x == 0 ? x : y - y, y - y);
    if (fabs(x) > 22) return T(copysign(decltype(x)(1), x), 4 * sin(y) * cos(y) * exp(-2 * fabs(x)));
    auto t = tan(y), beta = 1 + t * t, s = sinh(x), rho = sqrt(1 + s * s), down = 1 + beta * s * s;
    return T(beta * rho * s / down, t / down);
}

// Kahan's formulas, whose branch cuts follow from the signs of zeros.
template <typename T> __device__ T complex_asin(T a) {
    if (!isfinite(a.re) || !isfinite(a.im)) {
        decltype(a.re) half = 1.5707963267948966, inf = INFINITY_OF(a.re);
        if (a.re != a.re) return isinf(a.im) ? a : T(a.re, a.re);
        if (a.im != a.im) return isinf(a.re) ? T(a.im, a.re) : a.re == 0 ? a : T(a.im, a.im);
        if (isinf(a.re)) return T(copysign(isinf(a.im) ? half / 2 : half, a.re), copysign(inf, a.im));
        return T(copysign(decltype(a.re)(0), a.re), a.im);
    }
    T minus = complex_sqrt(T(1 - a.re, -a.im)), plus = complex_sqrt(T(1 + a.re, a.im));
    return T(atan2(a.re, minus.re * plus.re - minus.im * plus.im), asinh(minus.re * plus.im - minus.im * plus.re));
}

template <typename T> __device__ T complex_acos(T a) {
    if (!isfinite(a.re) || !isfinite(a.im)) {
        decltype(a.re) pi = 3.141592653589793, inf = INFINITY_OF(a.re);
        if (a.re != a.re) return isinf(a.im) ? T(a.re, -a.im) : T(a.re, a.re);
        if (a.im != a.im) return isinf(a.re) ? T(a.im, -a.re) : a.re == 0 ? T(pi / 2, a.im) : T(a.im, a.im);
        if (isinf(a.re)) return T(isinf(a.im) ? (a.re < 0 ? 3 * pi / 4 : pi / 4) : (a.re < 0 ? pi : 0), -copysign(inf, a.im));
        return T(pi / 2, -a.im);
    }
    T minus = complex_sqrt(T(1 - a.re, -a.im)), plus = complex_sqrt(T(1 + a.re, a.im));
    return T(2 * atan2(minus.re, plus.re), asinh(plus.re * minus.im - plus.im * minus.re));
}

template <typename T> __device__ T complex_acosh(T a) {
    T turned = complex_acos(a);
    if (a.re != a.re || a.im != a.im)
        return T(isinf(turned.im) ? fabs(turned.im) : turned.im, turned.re);
    return signbit(a.im) ? T(turned.im, -turned.re) : T(-turned.im, turned.re);
}

template <typename T> __device__ T complex_asinh(T a) { return over_i(complex_asin(times_i(a))); }

template <typename T> __device__ T complex_atanh(T a) {
    auto x = a.re, y = a.im;
    decltype(x) half = 1.5707963267948966;
    if (isinf(x) || isinf(y)) return T(x != x ? decltype(x)(0) : copysign(decltype(x)(0), x), y != y ? y : copysign(half, y));
    if (x != x || y != y) return T(x == 0 ? x : x + y, x + y);
    if (fabs(x) > 1e18 || fabs(y) > 1e18) {
        T inverse = T(1) / a;
        return T(inverse.re, copysign(half, y));
    }
    if (fabs(x) == 1 && y == 0) return T(copysign(INFINITY_OF(x), x), y);
    auto away = 1 - fabs(x);
    auto re = log1p(4 * fabs(x) / (away * away + y * y)) / 4;
    return T(copysign(re, x), atan2(2 * y, away * (1 + fabs(x)) - y * y) / 2);
}

template <typename T> __device__ T complex_power(T a, T b) {
    if (b.re == 0 && b.im == 0) return T(1);
    if (a.re == 0 && a.im == 0) return b.re > 0 ? T(0) : T(NAN_OF(a.re), NAN_OF(a.re));
    if (b.im == 0 && b.re == rint(b.re) && fabs(b.re) < 100) {
        T result(1), factor = a;
        for (int left = fabs(b.re); left; left >>= 1, factor = factor * factor)
            if (left & 1) result = result * factor;
        return b.re < 0 ? T(1) / result : result;
    }
    return complex_exp(b * complex_log(a));
}
