# cython: language_level=3
"""The same module in Cython. The declarations come from cupola's ``cdriver.pxd``, which Cython finds by itself."""

from cupola.bindings.cdriver cimport (
    CUDA_SUCCESS,
    CUdeviceptr,
    CUfunction,
    CUresult,
    CUstream,
    cupola_driver_table,
    cupola_import_driver,
)

cdef const cupola_driver_table *cu = cupola_import_driver()  # loads no library: the first call does


cdef int fail(CUresult status) except -1:
    """The exception of a failed call: a missing function or driver has one of its own."""
    cdef const char *name = NULL
    if cu.head.raise_pending() < 0:
        return -1
    cu.cuGetErrorName(status, &name)
    raise RuntimeError(f"the launch failed: {name.decode() if name else 'unknown status'}")


def scale(size_t function, CUdeviceptr pointer, float by, int n, size_t stream):
    """Multiply `n` floats on the device with the kernel `function` (float *, float, int)."""
    cdef void *arguments[3]
    cdef CUresult status
    cdef unsigned int blocks = (n + 127) // 128
    arguments[0], arguments[1], arguments[2] = &pointer, &by, &n
    with nogil:
        status = cu.cuLaunchKernel(<CUfunction>function, blocks, 1, 1, 128, 1, 1, 0, <CUstream>stream, arguments, NULL)
        if status == CUDA_SUCCESS:
            status = cu.cuStreamSynchronize(<CUstream>stream)
    if status != CUDA_SUCCESS:
        fail(status)
