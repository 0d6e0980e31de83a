// complex<T> for kernels of CuPy's users: the interface of std::complex as far as such kernels use it.
#pragma once

template <typename T> struct complex {
    typedef T value_type;
    T re, im;
    complex() = default;
    __host__ __device__ constexpr complex(T re, T im = T(0)) : re(re), im(im) {}
    template <typename Q> __host__ __device__ complex(const complex<Q>& other) : re(T(other.re)), im(T(other.im)) {}
    __host__ __device__ T real() const { return re; }
    __host__ __device__ T imag() const { return im; }
    __host__ __device__ void real(T value) { re = value; }
    __host__ __device__ void imag(T value) { im = value; }
    __host__ __device__ complex& operator+=(complex b) { return *this = *this + b; }
    __host__ __device__ complex& operator-=(complex b) { return *this = *this - b; }
    __host__ __device__ complex& operator*=(complex b) { return *this = *this * b; }
    __host__ __device__ complex& operator/=(complex b) { return *this = *this / b; }
    friend __host__ __device__ complex operator+(complex a) { return a; }
    friend __host__ __device__ complex operator-(complex a) { return complex(-a.re, -a.im); }
    friend __host__ __device__ complex operator+(complex a, complex b) { return complex(a.re + b.re, a.im + b.im); }
    friend __host__ __device__ complex operator-(complex a, complex b) { return complex(a.re - b.re, a.im - b.im); }
    friend __host__ __device__ complex operator*(complex a, complex b) {
        return complex(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
    }
    // Smith's method, which does not overflow where the quotient does not.
    friend __host__ __device__ complex operator/(complex a, complex b) {
        if (fabs(b.re) >= fabs(b.im)) {
            T ratio = b.im / b.re, scale = T(1) / (b.re + b.im * ratio);
            return complex((a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale);
        }
        T ratio = b.re / b.im, scale = T(1) / (b.im + b.re * ratio);
        return complex((a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale);
    }
    friend __host__ __device__ bool operator==(complex a, complex b) { return a.re == b.re && a.im == b.im; }
    friend __host__ __device__ bool operator!=(complex a, complex b) { return !(a == b); }
};

template <typename T> __host__ __device__ T real(complex<T> z) { return z.re; }
template <typename T> __host__ __device__ T imag(complex<T> z) { return z.im; }
template <typename T> __host__ __device__ T abs(complex<T> z) { return hypot(z.re, z.im); }
template <typename T> __host__ __device__ T norm(complex<T> z) { return z.re * z.re + z.im * z.im; }
template <typename T> __host__ __device__ T arg(complex<T> z) { return atan2(z.im, z.re); }
template <typename T> __host__ __device__ complex<T> conj(complex<T> z) { return complex<T>(z.re, -z.im); }
template <typename T> __host__ __device__ complex<T> polar(T size, T angle = T(0)) {
    return complex<T>(size * cos(angle), size * sin(angle));
}
template <typename T> __host__ __device__ complex<T> exp(complex<T> z) { return polar<T>(exp(z.re), z.im); }
template <typename T> __host__ __device__ complex<T> log(complex<T> z) { return complex<T>(log(abs(z)), arg(z)); }
template <typename T> __host__ __device__ complex<T> sqrt(complex<T> z) {
    T size = abs(z);
    if (size == T(0)) return complex<T>(T(0), z.im);
    T part = sqrt((size + fabs(z.re)) / 2);
    return z.re >= T(0) ? complex<T>(part, z.im / (2 * part)) : complex<T>(fabs(z.im) / (2 * part), copysign(part, z.im));
}
template <typename T> __host__ __device__ complex<T> pow(complex<T> z, complex<T> w) {
    return z == complex<T>(T(0)) ? complex<T>(T(0)) : exp(w * log(z));
}
template <typename T> __host__ __device__ complex<T> sin(complex<T> z) {
    return complex<T>(sin(z.re) * cosh(z.im), cos(z.re) * sinh(z.im));
}
template <typename T> __host__ __device__ complex<T> cos(complex<T> z) {
    return complex<T>(cos(z.re) * cosh(z.im), -sin(z.re) * sinh(z.im));
}
