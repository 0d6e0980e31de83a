# What the modules above give this one, and what they may take part in.

# What is set by the modules above: the class of arrays, and what writes kernels.
cdef type _array_class = None
cdef PyTypeObject* _exact_class = NULL      # the same
cdef object _elementwise = None
cdef object _reduction = None
cdef object _first_device = None
cdef object _general = None
cdef object _reduce = None
cdef object _product = None
cdef object _getitem = None
cdef object _setitem = None
cdef object _report_address = None
cdef bint _complete = False         # whether arrays have all that is set behind their class


def use(
    type array_class=None, elementwise=None, reduction=None, first_device=None, general=None, reduce=None, product=None,
    getitem=None, setitem=None, report_address=None, bint complete=False
):
    """Take what the modules above have."""
    global _array_class, _elementwise, _reduction, _first_device, _general, _reduce, _product, _complete
    global _getitem, _setitem, _report_address, _exact_class
    _getitem = _getitem if getitem is None else getitem
    _setitem = _setitem if setitem is None else setitem
    _report_address = _report_address if report_address is None else report_address
    _complete = _complete or complete
    _array_class = _array_class if array_class is None else array_class
    _exact_class = NULL if _array_class is None else <PyTypeObject*>_array_class
    _elementwise = _elementwise if elementwise is None else elementwise
    _reduction = _reduction if reduction is None else reduction
    _first_device = _first_device if first_device is None else first_device
    _general = _general if general is None else general
    _reduce = _reduce if reduce is None else reduce
    _product = _product if product is None else product


# What a package above may take part in: who gives memory, and which streams are recorded.
cdef object _allocator = None           # a Buffer for bytes and a stream; None: the device
cdef set _recording = set()


def watch(allocator):
    """Let ``allocator(size, stream)`` give arrays their memory."""
    global _allocator
    _allocator = allocator


def allocates():
    """Whether somebody else than the device gives arrays their memory."""
    return _allocator is not None


def compute_all(stream=None):
    """Compute all arrays that are pending; only those of a stream, if one is given.

    Otherwise what streams record stays: it belongs to their graphs, whatever becomes of these.
    """
    for one in all_pending(None):
        if (<Lazy>one)._stream not in _recording if stream is None else (<Lazy>one)._stream == stream:
            (<Lazy>one).open_memory()


def record(Stream stream not None, bint begin):
    """Say that the work of a stream is being recorded, or is no more.

    Such work sees what was there when that began, and waits for no other stream.
    """
    if begin:
        _recording.add(stream)
    else:
        _recording.discard(stream)


def records(stream):
    """Whether the work of a stream is being recorded."""
    return stream in _recording
