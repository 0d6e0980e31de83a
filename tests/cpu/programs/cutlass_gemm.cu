// CUTLASS's own kernel of compute capability 9.0: D = A B^T + C / 2, with a producer warp that copies by tensor maps to
// both blocks of a cluster, two warpgroups that multiply (wgmma), and an epilogue that loads C and stores D by tensor maps.
//
// A kernel's parameters come from CUTLASS, too, which computes them on the host with nvcc. NVRTC takes that code for the
// device's (-default-device), so a kernel of one thread does it; only the tensor maps are made by the host.
#include <cuda/std/type_traits>
namespace std {  // what CUTLASS expects of the host's library
using ::cuda::std::is_pointer_v;
using ::cuda::std::void_t;
}  // namespace std
#include <cutlass/kernel_hardware_info.h>
namespace cutlass {
struct KnownHardware : KernelHardwareInfo {
    static int query_device_multiprocessor_count(int = 0) { return 0; }  // asks the runtime where there is a host
};
}  // namespace cutlass
#define KernelHardwareInfo KnownHardware
#include <cute/tensor.hpp>
#include <cutlass/cutlass.h>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/kernel/gemm_universal.hpp>

using Half = cutlass::half_t;
using Row = cutlass::layout::RowMajor;
using Column = cutlass::layout::ColumnMajor;
using TileShape = cute::Shape<cute::_128, cute::_128, cute::_64>;
using Cluster = cute::Shape<cute::_2, cute::_1, cute::_1>;
using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, TileShape, Cluster,
    cutlass::epilogue::collective::EpilogueTileAuto, float, float, float, Row, 4, float, Row, 4,
    cutlass::epilogue::TmaWarpSpecializedCooperative>::CollectiveOp;
using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Half, Row, 8, Half, Column, 8, float, TileShape, Cluster,
    cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(sizeof(typename Epilogue::SharedStorage))>,
    cutlass::gemm::KernelTmaWarpSpecializedCooperative>::CollectiveOp;
using Gemm = cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, Mainloop, Epilogue>;

struct TensorMap {
    alignas(64) char bytes[128];  // CUtensorMap of cuda.h
};

template <class Copy>
__device__ void give(Copy& copy, const TensorMap& map) {
    *(TensorMap*)copy.get_tma_descriptor() = map;
}

// Bytes of the parameters and of shared memory, threads of a block, and the box in which C and D are copied.
extern "C" __global__ void facts(int* out) {
    out[0] = sizeof(Gemm::Params);
    out[1] = Gemm::SharedStorageSize;
    out[2] = Gemm::MaxThreadsPerBlock;
    out[3] = cute::size<0>(typename Epilogue::EpilogueTile{});
    out[4] = cute::size<1>(typename Epilogue::EpilogueTile{});
}

extern "C" __global__ void parameters(Gemm::Params* out, const __grid_constant__ TensorMap of_a,
                                      const __grid_constant__ TensorMap of_b, const __grid_constant__ TensorMap of_c,
                                      const __grid_constant__ TensorMap of_d, Half* a, Half* b, float* c, float* d,
                                      int m, int n, int k, int multiprocessors) {
    typename Gemm::Arguments arguments{cutlass::gemm::GemmUniversalMode::kGemm,
                                       {m, n, k, 1},
                                       {a, {k, {}, 0}, b, {k, {}, 0}},
                                       {{1.0f, 0.5f}, c, {n, {}, 0}, d, {n, {}, 0}},
                                       {0, multiprocessors}};
    Gemm::Params params = Gemm::to_underlying_arguments(arguments, nullptr);
    give(params.mainloop.tma_load_a, of_a);
    give(params.mainloop.tma_load_b, of_b);
    give(params.epilogue.tma_load_c, of_c);
    give(params.epilogue.tma_store_d, of_d);
    *out = params;
}

extern "C" __global__ void __launch_bounds__(Gemm::MaxThreadsPerBlock, 1)
product(const __grid_constant__ Gemm::Params params) {
    extern __shared__ char memory[];
    Gemm{}(params, memory);
}
