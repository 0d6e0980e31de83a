// Thrust and CUB: sorting, transforming, reducing, scanning.
#include <cub/device/device_scan.cuh>
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/reduce.h>
#include <thrust/sort.h>
#include <thrust/transform.h>

#include <algorithm>

#include "check.h"

struct Mix {
    __host__ __device__ int operator()(int i) const { return (i * 7919 + 13) % 10007; }
};

int main() {
    const int n = 20'000;
    thrust::device_vector<int> values(n);
    thrust::transform(thrust::counting_iterator<int>(0), thrust::counting_iterator<int>(n), values.begin(), Mix());
    thrust::host_vector<int> expected(n);
    for (int i = 0; i < n; i++) expected[i] = Mix()(i);
    long long sum = thrust::reduce(values.begin(), values.end(), 0LL);
    EXPECT(sum == thrust::reduce(expected.begin(), expected.end(), 0LL));

    thrust::sort(values.begin(), values.end());
    std::sort(expected.begin(), expected.end());
    EXPECT(thrust::host_vector<int>(values) == expected);

    thrust::device_vector<int> running(n);
    size_t bytes = 0;
    CHECK(cub::DeviceScan::InclusiveSum(nullptr, bytes, values.begin(), running.begin(), n));
    thrust::device_vector<char> storage(bytes);
    CHECK(cub::DeviceScan::InclusiveSum(thrust::raw_pointer_cast(storage.data()), bytes, values.begin(),
                                        running.begin(), n));
    EXPECT(running.back() == static_cast<int>(sum));
    std::printf("%d numbers sorted, their sum is %lld\n", n, sum);
}
