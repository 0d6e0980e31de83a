# How arrays are read in the order of a shape.

cdef struct Plan:
    int axes                            # dimensions of the layout; -1 without strides
    int kept                            # of these, how many come before `boundary`
    int64_t numbers[STRIDED * (READ + 2)]       # extents, then the strides of each array


cdef int plan(
    Walk* walk, int rank, const Py_ssize_t* extents, const int* order, int boundary, Plan* found, uint8_t* modes
) except -1:
    """How arrays are read in the order of a shape: in one piece (c), as a single element (1), or by strides (g).

    Dimensions on both sides of `boundary` are not joined.
    """
    cdef int k
    cdef bint strided = False
    cdef Array array
    cdef int axis
    for k in range(walk.arrays):
        array = <Array>walk.array[k]
        if array.count() == 1:
            modes[k] = c"1"
            continue
        modes[k] = c"g"
        if array.rank == rank and (array.dense if order == NULL else lies_in(array, order)):
            for axis in range(rank):
                if array.extents[axis] != extents[axis]:
                    break
            else:
                modes[k] = c"c"
                continue
        strided = True
    found.axes, found.kept = -1, 0
    if strided:
        for k in range(walk.arrays):
            if modes[k] == c"c":
                modes[k] = c"g"
        _join_dimensions(walk, rank, extents, order, boundary, found)
    return 0


cdef int _join_dimensions(
    Walk* walk, int rank, const Py_ssize_t* extents, const int* order, int boundary, Plan* found
) except -1:
    """Extents and strides with those dimensions joined that all arrays have in one piece."""
    cdef int64_t strides[READ + 1][MOST_AXES]
    cdef int64_t joined[READ + 1][MOST_AXES]
    cdef int64_t lengths[MOST_AXES]
    cdef int axis, at, k, own, axes = 0
    cdef int64_t extent
    cdef Array array
    cdef bint fits
    for k in range(walk.arrays):
        array = <Array>walk.array[k]
        for axis in range(rank):
            at = order[axis] if order != NULL else axis
            own = at - (rank - array.rank)
            strides[k][axis] = 0 if own < 0 or array.extents[own] == 1 else array.extents[array.rank + own]
    found.kept = 0
    for axis in range(rank):
        if axis == boundary:
            found.kept = axes
        extent = extents[order[axis] if order != NULL else axis]
        if extent == 1:
            continue
        fits = axes > found.kept
        if fits:
            for k in range(walk.arrays):
                if joined[k][axes - 1] != strides[k][axis] * extent:
                    fits = False
                    break
        if fits:
            lengths[axes - 1] *= extent
            for k in range(walk.arrays):
                joined[k][axes - 1] = strides[k][axis]
        else:
            lengths[axes] = extent
            for k in range(walk.arrays):
                joined[k][axes] = strides[k][axis]
            axes += 1
    if boundary == rank:
        found.kept = axes
    if axes > STRIDED:
        raise NotImplementedError(
            f"an expression of arrays whose strides need {axes} dimensions; at most {STRIDED} are computed. "
            "copy() makes an array lie in one piece"
        )
    found.axes = axes
    for axis in range(axes):
        found.numbers[axis] = lengths[axis]
        for k in range(walk.arrays):
            found.numbers[axes * (k + 1) + axis] = joined[k][axis]
    return 0


cdef int64_t take_rows(Walk* walk, Plan* found, uint8_t* modes) noexcept:
    """How long rows are, if kernels go along them: 0 if they do not.

    Rows are long, and all arrays have the elements of one side by side (r), or one element for all of it (s). The layout
    is that of the rows then.
    """
    cdef int last = found.axes - 1, k, axis
    cdef int64_t length, stride
    if last < 0 or found.numbers[last] < LONG_ROW:
        return 0
    length = found.numbers[last]
    for k in range(walk.arrays):
        stride = found.numbers[found.axes * (k + 1) + last]
        if modes[k] == c"g" and stride != 0 and stride != (<Array>walk.array[k]).itemsize:
            return 0
    for k in range(walk.arrays):
        if modes[k] == c"g":
            modes[k] = c"s" if found.numbers[found.axes * (k + 1) + last] == 0 else c"r"
    for k in range(walk.arrays + 1):
        for axis in range(last):
            found.numbers[last * k + axis] = found.numbers[found.axes * k + axis]
    found.axes = last
    return length


def layout(tuple shape, list arrays):
    """How arrays are read in the order of a shape.

    Returns
    -------
    tuple of (str, int, bytes)
        A letter for each array: in one piece (c), a single element (1), or by strides (g). How many dimensions their
        strides have, -1 without strides. Extents, and then the strides of each array, as int64.
    """
    cdef Walk walk
    cdef Plan found
    cdef uint8_t modes[READ + 1]
    cdef Py_ssize_t extents[MOST_AXES]
    cdef int k
    walk.words = walk.arrays = walk.values = walk.seen = 0
    for array in arrays:
        push_array(&walk, <Array?>array)
    for k in range(len(shape)):
        extents[k] = shape[k]
    plan(&walk, <int>len(shape), extents, NULL, 0, &found, modes)
    return (
        bytes([modes[k] for k in range(walk.arrays)]).decode(), found.axes,
        PyBytes_FromStringAndSize(<char*>found.numbers, max(found.axes, 0) * (walk.arrays + 1) * sizeof(int64_t)),
    )
