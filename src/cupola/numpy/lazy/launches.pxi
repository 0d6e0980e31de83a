# Launches of the package's own kernels.

cdef int start(Stream queue, Kernel kernel, int64_t blocks, void** parameters) except -1:
    """Launch a kernel of this package, whose parameters are known."""
    cdef CUlaunchConfig native
    cdef StreamHandle held = queue.hold()
    cdef CUresult status
    if replayed(kernel, held, blocks, BLOCK, parameters):
        return 0
    memset(&native, 0, sizeof(native))
    native.gridDimX, native.gridDimY, native.gridDimZ = <unsigned int>blocks, 1, 1
    native.blockDimX, native.blockDimY, native.blockDimZ = BLOCK, 1, 1
    native.hStream = held.pointer
    with nogil:
        status = cu.cuLaunchKernelEx(&native, <CUfunction>kernel.pointer, parameters, NULL)
    if status != CUDA_SUCCESS:
        retry(status, held, LaunchConfig(grid=blocks, block=BLOCK), kernel, &native, parameters)
    return 0


def enqueue(Kernel kernel not None, int64_t blocks, *arguments):
    """Launch a kernel of the files in ``kernels/`` in the current stream.

    Parameters
    ----------
    kernel : Kernel
        What to launch.
    blocks : int
        How many are enough; the kernel also works with less.
    *arguments
        Arrays, which are in memory and are not lent; None for no array; int for ``long long``; NumPy scalars.
    """
    cdef Value slots[24]
    cdef void* parameters[24]
    cdef Py_ssize_t k, count = len(arguments)
    cdef uint32_t size
    cdef int kind
    cdef Stream queue = in_force()
    if kernel.parameter_count == LAYOUT_UNREAD:
        kernel.read_layout()
    if count > 24 or kernel.parameter_count not in (count, LAYOUT_UNKNOWN):
        raise TypeError(f"kernel {kernel.find_name()} has {kernel.parameter_count} parameters; {count} are given")
    for k in range(count):
        one = arguments[k]
        size = 8
        if one is None:
            slots[k].u = 0
        elif isinstance(one, Array):
            require_open((<Array>one).open_memory())
            use_in(<Array>one, queue, True)
            slots[k].u = (<Array>one).pointer
        elif type(one) is int:
            slots[k].i = <int64_t>one
        else:
            kind = scalar_kind(one)
            store(one, kind, &slots[k])
            size = 4 if kind == _HALF else <uint32_t>_sizes[kind]
        if kernel.parameter_count >= 0 and kernel.parameters[k].size != size:
            raise TypeError(f"parameter {k} of kernel {kernel.find_name()} has {kernel.parameters[k].size} bytes")
        parameters[k] = &slots[k]
    start(queue, kernel, max(min(blocks, <int64_t>MOST_BLOCKS), 1), parameters)


cdef int64_t _most_blocks = 0       # 0: not known yet


cdef int64_t blocks_for(int64_t elements) except -1:
    """How many blocks compute so many elements, one or several in a thread."""
    return min((elements + BLOCK - 1) // BLOCK, _most_blocks if _most_blocks else most_blocks())


cpdef int64_t most_blocks() except -1:
    """How many blocks one launch has at most, whose threads then take several elements."""
    global _most_blocks
    _most_blocks = MANY_BLOCKS if _provider.current() == "cpu" else MOST_BLOCKS
    return _most_blocks
