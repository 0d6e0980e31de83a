# The device of an array, and whether kernels of the current one may use it.

cdef bint _several = True       # whether there are devices to mix up; True until that is known
cdef bint _counted = False


cdef int here() except -1:
    """The ordinal of the current device."""
    cdef CUdevice device = 0
    cdef CUresult status = cu.cuCtxGetDevice(&device)
    if status == CUDA_SUCCESS:
        return device
    return _first_device().device_id


cdef int home_of(Array x) except -2:
    """The ordinal of the device that has the memory, or will have it; -1: all may use it."""
    cdef int found
    if isinstance(x, Lazy):
        if (<Lazy>x).home == 0:
            (<Lazy>x).home = (here() if (<Lazy>x)._node is not None else _owner(x.open_memory())) + 1
        return (<Lazy>x).home - 1
    return _owner(x.open_memory())


cdef int _owner(Buffer memory) except -2:
    return -1 if memory.is_host_accessible else memory.device_id


cdef bint found_several() except -1:
    global _several, _counted
    if not _counted:
        _several, _counted = len(Device.get_all_devices()) > 1, True
    return _several


cdef int require_here(Array x) except -1:
    """ValueError if kernels of the current device may not use an array. Asked only if there are `_several` devices."""
    cdef int current, owner
    if not found_several():
        return 0
    current, owner = here(), home_of(x)
    if owner == current or owner < 0:
        return 0
    if not has_access(x.open_memory(), current):
        raise ValueError(
            f"an array of device {owner} in an operation on the current device, {current}, which has no access to its "
            f"memory: call cupola.Device({owner}).set_current() first, or copy the array to device {current} with "
            "cupola.numpy.asarray(x)"
        )
    return 0


cdef int require_stream_here(Stream queue) except -1:
    """ValueError if the stream of a ``with`` block is not of the current device."""
    cdef int current, owner
    if not found_several():
        return 0
    current, owner = here(), queue.find_device()
    if owner != current:
        raise ValueError(
            f"the stream of the with block is of device {owner}, and the current device is {current}: "
            f"call cupola.Device({owner}).set_current() before the block"
        )
    return 0


@cython.final
cdef class _Current:
    """Makes a device current for a ``with`` block, with its default stream; its value is whether another one was."""

    cdef int ordinal            # -1: leave all as it is
    cdef int pushed
    cdef Stream queue           # None: the stream in force stays

    def __enter__(self):
        self.pushed, self.queue = 0, None
        if self.ordinal >= 0 and self.ordinal != here():
            self.pushed = enter(primary_context(self.ordinal))
            self.queue = default_stream()
            enter_stream(self.queue)
        return self.pushed != 0

    def __exit__(self, *_):
        if self.queue is not None:
            leave_stream(self.queue)
        leave(self.pushed)


def made_current(int ordinal):
    """What makes a device current for a ``with`` block, unless it is; its value is whether another one was."""
    cdef _Current made = _Current.__new__(_Current)
    made.ordinal = ordinal
    return made


def own_device(Array x not None):
    """What makes the device of an array current for a ``with`` block; its value is whether another one was."""
    return made_current(home_of(x) if _several else -1)
