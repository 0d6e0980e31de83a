// What kernels made of the program's operations have: arrays with strides, the index of the loop, and half precision.
#pragma once

#include <cupy/complex.cuh>

struct float16 {
    unsigned short bits;
    float16() = default;
    __device__ float16(float value) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value)); }
    __device__ operator float() const {
        float value;
        asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
        return value;
    }
    __device__ float16& operator+=(float b) { return *this = float16(float(*this) + b); }
    __device__ float16& operator-=(float b) { return *this = float16(float(*this) - b); }
    __device__ float16& operator*=(float b) { return *this = float16(float(*this) * b); }
    __device__ float16& operator/=(float b) { return *this = float16(float(*this) / b); }
};

template <typename T, int N, bool in_one_piece> struct CArray {
    char* data_;
    ptrdiff_t size_, shape_[N ? N : 1], strides_[N ? N : 1];
    __device__ ptrdiff_t size() const { return size_; }
    __device__ const ptrdiff_t* shape() const { return shape_; }
    __device__ const ptrdiff_t* strides() const { return strides_; }
    __device__ T* begin() const { return (T*)data_; }
    __device__ T& operator[](const ptrdiff_t* index) const {
        char* place = data_;
        for (int axis = 0; axis < N; axis++) place += index[axis] * strides_[axis];
        return *(T*)place;
    }
    template <typename I> __device__ auto operator[](I index) const -> decltype((void)static_cast<ptrdiff_t>(index), *(T*)data_) {
        if constexpr (in_one_piece) return ((T*)data_)[index];
        char* place = data_;
        ptrdiff_t rest = index;
        for (int axis = N - 1; axis > 0; axis--) {
            place += rest % shape_[axis] * strides_[axis];
            rest /= shape_[axis];
        }
        if (N) place += rest * strides_[0];
        return *(T*)place;
    }
};

template <int N> struct CIndexer {
    ptrdiff_t size_, shape_[N ? N : 1], index_[N ? N : 1];
    __device__ ptrdiff_t size() const { return size_; }
    __device__ const ptrdiff_t* shape() const { return shape_; }
    __device__ const ptrdiff_t* get() const { return index_; }
    __device__ void set(ptrdiff_t i) {
        for (int axis = N - 1; axis >= 0; axis--) {
            index_[axis] = i % shape_[axis];
            i /= shape_[axis];
        }
    }
};
