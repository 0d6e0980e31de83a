"""Tensor maps: what the copy engine of a GPU (TMA) must know of a tensor. Imported when one is made.

The driver encodes a map; it owns nothing, and the 128 bytes are copied at a launch. The sequences of the driver begin
with the innermost dimension, those of this module with the outermost one.
"""

from cpython.long cimport PyLong_AsLongAndOverflow
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t, uintptr_t
from libc.string cimport memcpy, memset

from cupola.core.base._cuda cimport (
    CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS, CUcontext, CUdevice, CUresult, CUtensorMap, CUtensorMapDataType,
    CUtensorMapFloatOOBfill, CUtensorMapIm2ColWideMode, CUtensorMapInterleave, CUtensorMapL2promotion,
    CUtensorMapSwizzle, check, cu, factory_error, fail_because
)
from cupola.core.base._dlpack cimport kDLBfloat, kDLCUDA, kDLFloat, kDLInt, kDLUInt
from cupola.core.device._context cimport current_context
from cupola.core.device._device cimport get_device
from cupola.core.exchange._strided_memory cimport OTHER_TYPE
from cupola.core.exchange cimport _view
from cupola.core.exchange._view cimport StridedMemoryView

from cupola._above import above
from cupola.core.base._options import as_options
from cupola.core.exchange._tensor_map_options import (
    TensorMapDataType, TensorMapDescriptorOptions, TensorMapIm2ColWideMode, TensorMapInterleave, TensorMapL2Promotion,
    TensorMapOOBFill, TensorMapSwizzle, data_type as _data_type, integers, member, of_dtype, why_refused
)

cimport cython

cdef enum:
    RANK = 5
    MAP_BYTES = 128
    MAP_ALIGNMENT = 64


cdef struct Encoding:
    # What the functions of the driver have in common, in the driver's order.
    CUtensorMapDataType type
    uint32_t rank
    uint64_t dims[RANK]
    uint64_t strides[RANK]
    uint32_t steps[RANK]
    CUtensorMapInterleave interleave
    CUtensorMapSwizzle swizzle
    CUtensorMapL2promotion promotion
    CUtensorMapFloatOOBfill fill


@cython.freelist(8)
cdef class TensorMapDescriptor:
    """TensorMapDescriptor()\n--\n\nHow the copy engine of the GPU (TMA) reads and writes a tensor: an argument for kernels (``CUtensorMap``).

    Make one with :meth:`.StridedMemoryView.as_tensor_map`, and pass it to :func:`.launch` for a parameter
    ``const __grid_constant__ CUtensorMap``. It keeps the view and the object that the view is of. Needs compute
    capability 9.0.

    Threads may share a descriptor as long as none replaces its address.

    Notes
    -----
    Threads may share it, except while one of them calls :meth:`replace_address`.
    """
    cdef unsigned char storage[MAP_BYTES + MAP_ALIGNMENT]
    cdef CUtensorMap* map           # inside, aligned
    cdef CUcontext context
    cdef int device_id
    cdef StridedMemoryView view
    cdef str mode
    cdef uint32_t rank
    cdef int type, interleave, swizzle

    def __cinit__(self):
        cdef uintptr_t start = <uintptr_t>&self.storage[0]
        self.map = <CUtensorMap*>((start + MAP_ALIGNMENT - 1) & ~<uintptr_t>(MAP_ALIGNMENT - 1))

    def __init__(self):
        raise factory_error("TensorMapDescriptor", "StridedMemoryView.as_tensor_map")

    @property
    def device(self):
        """Device: where the tensor map was made; it is good there."""
        return get_device(self.device_id)

    def replace_address(self, tensor):
        """Let the map describe another tensor of the same shape and strides (``cuTensorMapReplaceAddress``).

        Parameters
        ----------
        tensor : StridedMemoryView or object
            A view, or what a view can be made of; its shape is not compared. It must be ready: nothing is waited for.

        Raises
        ------
        RuntimeError
            When another context or device is current than where the map was made.
        ValueError
            When the memory is not accessible on the device, not aligned to 16 bytes (32 with ``INTERLEAVE_32B``), or on
            another device. The map is as before then.
        """
        cdef StridedMemoryView view, before
        cdef CUtensorMap* changed
        cdef CUresult status
        cdef unsigned char room[MAP_BYTES + MAP_ALIGNMENT]
        self.require_context()
        if isinstance(tensor, StridedMemoryView):
            view = <StridedMemoryView>tensor
        else:
            view = StridedMemoryView.from_any_interface(tensor, stream_ptr=-1)
        _check_memory(view)
        _check_place(view, self.device_id)
        if view.ptr % 32 and self.interleave == 2:
            raise ValueError(f"the address {view.ptr:#x} is no multiple of 32 bytes, as INTERLEAVE_32B wants")
        changed = <CUtensorMap*>((<uintptr_t>&room[0] + MAP_ALIGNMENT - 1) & ~<uintptr_t>(MAP_ALIGNMENT - 1))
        memcpy(changed, self.map, MAP_BYTES)
        status = cu.cuTensorMapReplaceAddress(changed, <void*>view.ptr)
        check(status, b"cuTensorMapReplaceAddress")
        with cython.critical_section(self):
            before = self.view      # let go of behind this
            memcpy(self.map, changed, MAP_BYTES)
            self.view = view

    @classmethod
    def _from_tiled(
        cls, view, box_dim=None, *, options=None, element_strides=None, data_type=None,
        interleave=TensorMapInterleave.NONE, swizzle=TensorMapSwizzle.NONE, l2_promotion=TensorMapL2Promotion.NONE,
        oob_fill=TensorMapOOBFill.NONE
    ):
        """The same as :meth:`.StridedMemoryView.as_tensor_map`."""
        return _make_tiled(
            _a_view(view), box_dim, options, element_strides, data_type, interleave, swizzle, l2_promotion, oob_fill
        )

    @classmethod
    def _from_im2col(
        cls, view, pixel_box_lower_corner, pixel_box_upper_corner, channels_per_pixel, pixels_per_column, *,
        element_strides=None, data_type=None, interleave=TensorMapInterleave.NONE, swizzle=TensorMapSwizzle.NONE,
        l2_promotion=TensorMapL2Promotion.NONE, oob_fill=TensorMapOOBFill.NONE
    ):
        """Columns of pixels, for convolutions (``cuTensorMapEncodeIm2col``).

        The tensor is N[D][H]WC. Corners have an entry for each of its spatial dimensions, outermost first.
        """
        cdef TensorMapDescriptor made = TensorMapDescriptor.__new__(TensorMapDescriptor)
        cdef Encoding encoding
        cdef int lower[RANK]
        cdef int upper[RANK]
        cdef CUresult status
        cdef uint32_t i
        cdef uint32_t channels = channels_per_pixel
        cdef uint32_t pixels = pixels_per_column
        lows, highs = integers("pixel_box_lower_corner", pixel_box_lower_corner), integers(
            "pixel_box_upper_corner", pixel_box_upper_corner)
        made.begin(_a_view(view), &encoding, data_type, element_strides, interleave, swizzle, l2_promotion, oob_fill)
        made.require_images(&encoding)
        for name, corner in (("lower", lows), ("upper", highs)):
            if len(corner) != encoding.rank - 2:
                raise ValueError(
                    f"pixel_box_{name}_corner has {len(corner)} entries; a tensor of {encoding.rank} dimensions has "
                    f"{encoding.rank - 2} spatial ones"
                )
        for i in range(encoding.rank - 2):
            lower[i] = lows[encoding.rank - 3 - i]
            upper[i] = highs[encoding.rank - 3 - i]
        status = cu.cuTensorMapEncodeIm2col(
            made.map, encoding.type, encoding.rank, <void*>made.view.ptr, encoding.dims, encoding.strides, lower, upper,
            channels, pixels, encoding.steps, encoding.interleave, encoding.swizzle, encoding.promotion, encoding.fill
        )
        made.mode = "im2col"
        made.finish(status, &encoding, b"cuTensorMapEncodeIm2col", "channels_per_pixel", channels)
        return made

    @classmethod
    def _from_im2col_wide(
        cls, view, pixel_box_lower_corner_width, pixel_box_upper_corner_width, channels_per_pixel, pixels_per_column, *,
        element_strides=None, data_type=None, interleave=TensorMapInterleave.NONE, mode=TensorMapIm2ColWideMode.W,
        swizzle=TensorMapSwizzle.SWIZZLE_128B, l2_promotion=TensorMapL2Promotion.NONE, oob_fill=TensorMapOOBFill.NONE
    ):
        """Pixels along the width only (``cuTensorMapEncodeIm2colWide``); needs compute capability 10.0 and CUDA 13."""
        cdef TensorMapDescriptor made = TensorMapDescriptor.__new__(TensorMapDescriptor)
        cdef Encoding encoding
        cdef CUresult status
        cdef int lower = pixel_box_lower_corner_width
        cdef int upper = pixel_box_upper_corner_width
        cdef uint32_t channels = channels_per_pixel
        cdef uint32_t pixels = pixels_per_column
        cdef CUtensorMapIm2ColWideMode how = <CUtensorMapIm2ColWideMode><int>member(
            "mode", mode, TensorMapIm2ColWideMode)
        made.begin(_a_view(view), &encoding, data_type, element_strides, interleave, swizzle, l2_promotion, oob_fill)
        made.require_images(&encoding)
        status = cu.cuTensorMapEncodeIm2colWide(
            made.map, encoding.type, encoding.rank, <void*>made.view.ptr, encoding.dims, encoding.strides, lower, upper,
            channels, pixels, encoding.steps, encoding.interleave, how, encoding.swizzle, encoding.promotion,
            encoding.fill
        )
        made.mode = "im2col_wide"
        made.finish(status, &encoding, b"cuTensorMapEncodeIm2colWide", "channels_per_pixel", channels)
        return made

    cdef int begin(
        self, StridedMemoryView view, Encoding* encoding, object data_type, object steps, object interleave,
        object swizzle, object promotion, object fill
    ) except -1:
        """Check the view and describe its tensor."""
        cdef int i, axis
        cdef int64_t stride
        cdef CUdevice device = 0
        cdef object wanted = None
        if data_type is not None:
            wanted = _data_type(data_type)
        encoding.interleave = <CUtensorMapInterleave>_enum("interleave", interleave, TensorMapInterleave)
        encoding.swizzle = <CUtensorMapSwizzle>_enum("swizzle", swizzle, TensorMapSwizzle)
        encoding.promotion = <CUtensorMapL2promotion>_enum("l2_promotion", promotion, TensorMapL2Promotion)
        encoding.fill = <CUtensorMapFloatOOBfill>_enum("oob_fill", fill, TensorMapOOBFill)
        _check_memory(view)
        self.context = current_context()
        if self.context == NULL:
            raise RuntimeError("a tensor map is made in the current context, and there is none: call Device.set_current()")
        check(cu.cuCtxGetDevice(&device), b"cuCtxGetDevice")
        self.device_id = device
        _check_place(view, device)
        encoding.type = <CUtensorMapDataType>_type_of(view, wanted)
        if not 1 <= view.ndim <= RANK:
            raise ValueError(f"a tensor map has 1 to {RANK} dimensions, the view has {view.ndim}")
        encoding.rank = <uint32_t>view.ndim
        for i in range(view.ndim):
            axis = view.ndim - 1 - i
            encoding.dims[i] = <uint64_t>view.extents[axis]
            encoding.steps[i] = 1
            if i > 0:
                stride = view.extents[view.ndim + axis] * view.itemsize
                encoding.strides[i - 1] = <uint64_t>stride
        self.view, self.rank, self.type = view, encoding.rank, encoding.type
        self.interleave, self.swizzle = encoding.interleave, encoding.swizzle
        if view.extents[2 * view.ndim - 1] != 1 and view.extents[view.ndim - 1] > 1:
            raise ValueError(
                f"the elements of the last dimension are {view.extents[2 * view.ndim - 1]} elements apart; a tensor map "
                "wants neighbors: permute the view's layout, or copy the tensor"
            )
        return 0 if steps is None else self.read_steps(encoding, steps)

    cdef int read_steps(self, Encoding* encoding, object steps) except -1:
        cdef uint32_t i
        steps = integers("element_strides", steps)
        if len(steps) != encoding.rank:
            raise ValueError(
                f"element_strides has {len(steps)} entries; the tensor has {encoding.rank} dimensions"
            )
        for i in range(encoding.rank):
            encoding.steps[i] = steps[encoding.rank - 1 - i]
        return 0

    cdef int require_images(self, Encoding* encoding) except -1:
        if encoding.rank < 3:
            raise ValueError(f"images have 3 to {RANK} dimensions, the view has {encoding.rank}")
        return 0

    cdef int finish(self, CUresult status, Encoding* encoding, const char* call, str row, uint32_t extent) except -1:
        """Raise what the driver says, with the rule that was broken, if it is one that we know."""
        cdef uint32_t i
        cdef StridedMemoryView view = self.view
        if status == CUDA_SUCCESS:
            return 0
        if status == CUDA_ERROR_INVALID_VALUE:
            why = why_refused(
                view.ptr, self.type, view.shape,
                [<int64_t>encoding.strides[i] for i in reversed(range(encoding.rank - 1))],
                (row, extent), [encoding.steps[i] for i in reversed(range(encoding.rank))], self.interleave,
                self.swizzle, <int>encoding.fill
            )
            if why:
                return fail_because(status, call, why)
        return check(status, call)

    cdef int require_context(self) except -1:
        cdef CUcontext context = current_context()
        cdef CUdevice device = 0
        if context != self.context:
            if context != NULL:
                check(cu.cuCtxGetDevice(&device), b"cuCtxGetDevice")
            raise RuntimeError(
                f"the tensor map was made in another context, of device {self.device_id}; "
                + (f"that of device {device} is current" if context != NULL else "none is current")
            )
        return 0

    def __repr__(self):
        return (
            f"TensorMapDescriptor({self.mode}, rank={self.rank}, dtype={TensorMapDataType(self.type).name}, "
            f"swizzle={TensorMapSwizzle(self.swizzle).name})"
        )

    def __reduce__(self):
        raise TypeError("a tensor map cannot be pickled: it has an address of this process")


cdef object _make_tiled(
    StridedMemoryView view, object box_dim, object options, object element_strides, object data_type, object interleave,
    object swizzle, object l2_promotion, object oob_fill
):
    """What :meth:`.StridedMemoryView.as_tensor_map` gives."""
    if options is not None:
        if (
            box_dim is not None or element_strides is not None or data_type is not None or interleave
            or swizzle or l2_promotion or oob_fill
        ):
            raise TypeError("give options, or box_dim and the other arguments, not both")
        chosen = as_options(TensorMapDescriptorOptions, options)
        return _encode_tiled(
            view, chosen.box_dim, chosen.element_strides, chosen.data_type, chosen.interleave, chosen.swizzle,
            chosen.l2_promotion, chosen.oob_fill
        )
    if box_dim is None:
        raise TypeError("give box_dim, what one copy moves in each dimension, or options")
    return _encode_tiled(view, box_dim, element_strides, data_type, interleave, swizzle, l2_promotion, oob_fill)


# Nothing is assigned to the arguments: each of those would be counted once more.
cdef TensorMapDescriptor _encode_tiled(
    StridedMemoryView view, object box_dim, object element_strides, object data_type, object interleave,
    object swizzle, object l2_promotion, object oob_fill
):
    cdef TensorMapDescriptor made
    cdef Encoding encoding
    cdef uint32_t box[RANK]
    cdef uint32_t i
    cdef object extent
    cdef object steps = None
    cdef long length
    cdef int overflow
    cdef tuple extents
    cdef CUresult status
    extents = <tuple>box_dim if type(box_dim) is tuple else integers("box_dim", box_dim)
    for extent in extents:
        if not isinstance(extent, int):
            integers("box_dim", extents)        # raises
    made = TensorMapDescriptor.__new__(TensorMapDescriptor)
    if element_strides is not None:
        steps = integers("element_strides", element_strides)
    made.begin(view, &encoding, data_type, None, interleave, swizzle, l2_promotion, oob_fill)
    if len(extents) != encoding.rank:
        raise ValueError(f"box_dim has {len(extents)} entries; the tensor has {encoding.rank} dimensions")
    for i in range(encoding.rank):
        extent = extents[encoding.rank - 1 - i]
        length = PyLong_AsLongAndOverflow(extent, &overflow)
        if overflow or not 1 <= length <= 256:
            raise ValueError(f"box_dim[{encoding.rank - 1 - i}] is {extent}; it must be from 1 to 256")
        box[i] = <uint32_t>length
    if steps is not None:
        made.read_steps(&encoding, steps)
    status = cu.cuTensorMapEncodeTiled(
        made.map, encoding.type, encoding.rank, <void*>view.ptr, encoding.dims, encoding.strides, box, encoding.steps,
        encoding.interleave, encoding.swizzle, encoding.promotion, encoding.fill
    )
    made.mode = "tiled"
    if status != CUDA_SUCCESS:
        made.finish(status, &encoding, b"cuTensorMapEncodeTiled", f"box_dim[{encoding.rank - 1}]", box[0])
    return made


cdef StridedMemoryView _a_view(object view):
    if not isinstance(view, StridedMemoryView):
        raise TypeError(f"view must be a StridedMemoryView, not {type(view).__name__}")
    return <StridedMemoryView>view


cdef int _enum(str name, object value, object kind) except -1:
    return 0 if value is None else <int>member(name, value, kind)


cdef int _check_memory(StridedMemoryView view) except -1:
    view.require_memory()
    if not view.is_device_accessible:
        raise ValueError("the tensor is in memory of the host that kernels cannot use: copy it to a Buffer")
    if view.ptr % 16:
        raise ValueError(f"the address of the tensor, {view.ptr:#x}, is no multiple of 16 bytes")
    return 0


cdef int _check_place(StridedMemoryView view, int device) except -1:
    if view.device_type == kDLCUDA and view.device_id != device:
        raise ValueError(f"the tensor is on device {view.device_id}, the current one is {device}")
    return 0


cdef int _type_of(StridedMemoryView view, object wanted) except -1:
    """The driver's type of elements."""
    if wanted is not None:
        return wanted if isinstance(wanted, TensorMapDataType) else _of_dtype(wanted)
    if view.tensor_type == 0:
        view.tensor_type = _type_of_elements(view) + 1
    return view.tensor_type - 1


cdef int _type_of_elements(StridedMemoryView view) except -1:
    cdef int bits
    if view.dl_type.code == OTHER_TYPE or view.dl_type.lanes != 1:
        return _of_dtype(view.dtype)
    bits = view.dl_type.bits
    if view.dl_type.code == kDLFloat and bits in (16, 32, 64):
        return 6 if bits == 16 else 7 if bits == 32 else 8
    if view.dl_type.code == kDLUInt and bits in (8, 16, 32, 64):
        return 0 if bits == 8 else 1 if bits == 16 else 2 if bits == 32 else 4
    if view.dl_type.code == kDLInt and bits in (32, 64):
        return 3 if bits == 32 else 5
    if view.dl_type.code == kDLBfloat and bits == 16:
        return 9
    return _of_dtype(view.dtype)


cdef dict _types = {}       # by numpy.dtype: its name takes a while to make


cdef int _of_dtype(object dtype) except -1:
    cdef object found = _types.get(dtype)
    if found is None:
        found = _types[dtype] = of_dtype(dtype)
    return found


def _read(TensorMapDescriptor descriptor):
    """Where the bytes of an argument are, and how many."""
    descriptor.require_context()
    return <uintptr_t>descriptor.map, MAP_BYTES


above("register_argument_type")(TensorMapDescriptor, _read)
_view.make_tensor_map = _make_tiled
