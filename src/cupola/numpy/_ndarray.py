"""The array of cupola.numpy: memory with a shape, or an expression that has not been computed yet.

How expressions become kernels is in _lazy.pyx, with the operators and the quick way of calls. Here is what NumPy's
arrays have beside, and what calls do that are not of the usual form.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy

from cupola.core.array._array import Array, element_type
from cupola.core.device._device import Device
from cupola.core.device._stream import Stream
from cupola.numpy import _faults, _lazy
from cupola.numpy._evaluate import current_stream, device
from cupola.numpy._evaluate import device as current_device
from cupola.numpy._known import NAMESPACE, UFUNCS, nearest
from cupola.numpy._lazy import (
    Lazy,
    adopt,
    allocates,
    make_node,
    new_memory,
    own_device,
    pending,
    quick_end,
    quick_operators,
    reduce,
    reduce_along,
    write,
)
from cupola.numpy._operations import MEMORY
from cupola.numpy._order import (
    copied,
    extents_of,
    has_order,
    in_order,
    is_column_major,
    letter,
    nested,
    turns,
    undone,
)
from cupola.numpy._report import noted

# Of the attributes of NumPy's arrays that are not here: what does the same.
_INSTEAD = {
    "ctypes": "x.handle is the address on the device",
    "data": "x.handle is the address on the device, and x.buffer the memory",
    "getfield": "x['name'] is a field, and x.view(dtype) another type",
    "setfield": "x['name'] = values overwrites a field",
    "setflags": "arrays can always be written",
}
_NUMBERS = (bool, int, float, complex)
_HOST = (1, 0)  # DLPack's kDLCPU


def is_weak(value: Any) -> bool:
    """Whether it is a number of Python, whose type gives way to that of arrays. Some of NumPy's are subclasses."""
    return isinstance(value, _NUMBERS) and not isinstance(value, numpy.generic)


class ndarray(Lazy):
    """ndarray(shape, dtype=float)\n--\n\nAn array on the device with the interface of ``numpy.ndarray``.

    ``cupola.numpy.array``, ``zeros`` and other functions make arrays. Results of elementwise functions and operators
    are computed when their elements are needed, several in one kernel.

    Parameters
    ----------
    shape : int or tuple of int
        Extents.
    dtype : optional
        What ``numpy.dtype`` takes.

    Notes
    -----
    Threads may share an array that none of them writes. Work is queued in the stream of the innermost ``with`` block,
    else in the default stream.
    """

    __slots__ = ()

    __array_priority__ = 100

    if TYPE_CHECKING:  # what is set behind the class, in _index.py and _methods.py, too

        def _operator(self, other: Any) -> ndarray: ...

        __pow__ = __rpow__ = __matmul__ = __rmatmul__ = _operator
        argmax: Any
        argsort: Any
        cumsum: Any

        def _part(self, key: Any) -> ndarray: ...
        def __getitem__(self, key: Any) -> ndarray: ...
        def __setitem__(self, key: Any, value: Any) -> None: ...

    def __init__(self, shape: Any, dtype: Any = "float64") -> None:
        made = empty(shape, dtype)
        self._describe(made.shape, made.dtype)
        self._node, self._stream = None, made._stream
        self._settle(made._memory())

    # --- given to others --------------------------------------------------------------------------------

    @property
    def handle(self) -> int:
        """int: the address of the first element."""
        self._lend()
        return int(Array.handle.__get__(self))

    @property
    def buffer(self) -> Any:
        """Buffer: the memory, shared with all views of it."""
        self._lend()
        return Array.buffer.__get__(self)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        self._lend()
        if not self.size:  # whoever gave the memory of nothing
            return {
                "version": 3, "shape": self.shape, "strides": None, "typestr": self.dtype.str,
                "descr": self.dtype.descr, "data": (0, False), "stream": None,
            }  # fmt: skip
        found: dict[str, Any] = Array.__cuda_array_interface__.__get__(self)
        return found

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """The array as a DLPack capsule, which keeps its memory, or that of a copy.

        Parameters
        ----------
        stream : int, optional
            Ignored: work that is queued in other streams is for the caller to wait for.
        max_version : tuple of (int, int), optional
            From (1, 0) on the capsule is a versioned one.
        dl_device : tuple of (int, int), optional
            Where the elements are to be: on the device of the array, or, as a copy, on the host, ``(1, 0)``.
        copy : bool, optional
            Whether they are copied; by default only where that is necessary.

        Raises
        ------
        BufferError
            For another device, and for the host with ``copy=False``; for types and strides that DLPack does not have.
        """
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            if tuple(dl_device) != _HOST:
                raise BufferError(f"the array is on {self.__dlpack_device__()}; it can be copied to {_HOST}, the host")
            if copy is False:
                raise BufferError("the array is on a device: for the host it must be copied, so copy must not be False")
            host = self.to_numpy()
            try:
                return host.__dlpack__(max_version=max_version)
            except TypeError:  # NumPy before 2.1
                return host.__dlpack__()
        if copy:
            return self.copy().__dlpack__(stream=stream, max_version=max_version)
        self._lend()
        return super().__dlpack__(stream=stream, max_version=max_version)

    def _view_of(self, *arguments: Any) -> ndarray:
        return super()._view_of(*arguments)

    def transpose(self, *axes: Any) -> ndarray:
        """The view with the dimensions in another order, as ``numpy.ndarray.transpose``."""
        return super().transpose(*axes)

    # --- to the host ------------------------------------------------------------------------------------

    def to_numpy(self, *, stream: Stream | None = None) -> numpy.ndarray:
        """Copy the elements to the host, and wait for them; see :meth:`cupola.Array.to_numpy`.

        The array may be on another device than the current one.
        """
        device()  # a thread that has no device yet may read arrays, too
        with noted("wait"), own_device(self) as elsewhere:
            if elsewhere and stream is None:
                Device(self._place()).sync()
                stream = self._own_stream()
            self._order(stream if isinstance(stream, Stream) else None)
            found = self._plain().to_numpy(stream=stream)
        _faults.check()
        return found

    def get(self) -> numpy.ndarray:
        """Copy the elements to the host, and wait for them."""
        return self.to_numpy()

    def copy_from(self, src: Any, *, stream: Any = None) -> None:
        """Overwrite the elements; see :meth:`cupola.Array.copy_from`."""
        queue = stream if isinstance(stream, Stream) else None  # what is recorded waits for nothing
        self._before_writing()
        self._order(queue, True)
        if isinstance(src, ndarray):
            src._order(queue)
        self._plain().copy_from(src._plain() if isinstance(src, Array) else src, stream=stream)

    def copy_to(self, dst: Any, *, stream: Any = None) -> Any:
        """Copy the elements to another array; see :meth:`cupola.Array.copy_to`."""
        if isinstance(dst, ndarray):
            dst.copy_from(self, stream=stream)
            return dst
        self._order(stream if isinstance(stream, Stream) else None)
        return self._plain().copy_to(dst, stream=stream)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> numpy.ndarray:
        if copy is False:
            raise ValueError("the elements are on a device: NumPy can only have a copy of them")
        found = self.to_numpy()
        return found if dtype is None else found.astype(dtype)

    def item(self, *index: Any) -> Any:
        """The element as a Python number; of an array of one element, at indices, or at a place in row-major order."""
        if len(index) == 1 and not isinstance(index[0], tuple):
            return self.reshape(-1)[index[0]].to_numpy().item()
        key = index[0] if len(index) == 1 else index
        if key and len(key) != self.ndim:
            raise ValueError("incorrect number of indices for array")
        return (self[key] if key else self).to_numpy().item()

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
        return self.to_numpy().tolist()

    def __bool__(self) -> bool:
        return bool(self.to_numpy())

    def __int__(self) -> int:
        return int(self.to_numpy())

    def __float__(self) -> float:
        return float(self.to_numpy())

    def __complex__(self) -> complex:
        return complex(self.to_numpy())

    def __index__(self) -> int:
        return operator.index(self.to_numpy())

    def __repr__(self) -> str:
        return repr(self.to_numpy())

    def __str__(self) -> str:
        return str(self.to_numpy())

    def __format__(self, form: str) -> str:
        return format(self.to_numpy()[()], form)

    def __reduce__(self) -> Any:
        return array, (self.to_numpy(),)

    __hash__ = None  # type: ignore[assignment]

    # --- writing ----------------------------------------------------------------------------------------

    def fill(self, value: Any) -> None:
        """Overwrite all elements with a number."""
        write(self, _operand(value, self.dtype))

    # --- the same elements in another way ---------------------------------------------------------------

    @property
    def real(self) -> ndarray:
        """ndarray: the real parts, a view."""
        if self.dtype.kind != "c":
            return self
        self._compute_now()
        return self._view_of(self.shape, self.strides, 0, numpy.dtype(f"f{self.itemsize // 2}"))

    @real.setter
    def real(self, value: Any) -> None:
        write(self.real, _operand(value, self.real.dtype))

    @property
    def imag(self) -> ndarray:
        """ndarray: the imaginary parts, a view; zeros for real numbers."""
        if self.dtype.kind != "c":
            made = empty(self.shape, self.dtype)
            made.fill(0)
            return made
        self._compute_now()
        half = self.itemsize // 2
        return self._view_of(self.shape, self.strides, half, numpy.dtype(f"f{half}"))

    @imag.setter
    def imag(self, value: Any) -> None:
        if self.dtype.kind != "c":
            raise TypeError("array does not have imaginary part to set")
        write(self.imag, _operand(value, self.imag.dtype))

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> ndarray:
        """The diagonal as a view, as ``numpy.diagonal``."""
        if self.ndim < 2:
            raise ValueError("diag requires an array of at least two dimensions")
        (one,), (other,) = _axes(axis1, self.ndim), _axes(axis2, self.ndim)
        if one == other:
            raise ValueError("axis1 and axis2 cannot be the same")
        self._compute_now()
        rows, columns = self.shape[one], self.shape[other]
        length = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
        start = offset * self.strides[other] if offset >= 0 else -offset * self.strides[one]
        rest = [k for k in range(self.ndim) if k not in (one, other)]
        return self._view_of(
            [*[self.shape[k] for k in rest], length],
            [*[self.strides[k] for k in rest], self.strides[one] + self.strides[other]],
            start if length else 0,
        )

    @property
    def mT(self) -> ndarray:
        """ndarray: the view with the last two dimensions exchanged."""
        if self.ndim < 2:
            raise ValueError("mT needs at least two dimensions")
        return self.transpose(*range(self.ndim - 2), self.ndim - 1, self.ndim - 2)

    def reshape(self, *shape: Any, order: Any = "C", copy: bool | None = None) -> ndarray:
        """The same elements with other extents: a view if there is one, else a copy.

        Parameters
        ----------
        *shape : int, or a tuple of int
            The extents; one of them may be -1.
        order : str
            Which elements follow each other: C row-major, F column-major, A the latter if that is how they lie.
        copy : bool, optional
            Whether it must be a copy; False: a ValueError instead of one.

        Returns
        -------
        ndarray
        """
        if order != "C" or copy is not None:
            return self._reshaped(shape, order, copy)
        try:
            return super().reshape(*shape)
        except ValueError as error:
            if "make a copy" not in str(error):
                raise
            return self.copy().reshape(*shape)

    def _reshaped(self, shape: tuple[Any, ...], order: Any, copy: bool | None) -> ndarray:
        extents = extents_of(shape[0] if len(shape) == 1 else shape)
        if letter(order) == "K":
            raise ValueError("order 'K' is not permitted for reshaping")
        if turns(self, order):
            return self.transpose().reshape(extents[::-1], copy=copy).transpose()
        if copy is False:
            self._compute_now()
            return self._view_only(extents)
        return (self.copy() if copy else self).reshape(extents)

    def _view_only(self, shape: Any) -> ndarray:
        """The view of that shape; a ValueError if there is none."""
        return super().reshape(shape)

    def ravel(self, order: Any = "C") -> ndarray:
        """All elements in one dimension, in an order C, F, A or K: a view if there is one, else a copy."""
        made = self.reshape(-1) if order == "C" else self._as_it_lies(order).reshape(-1)
        return made if made.is_contiguous else made.copy()

    def _as_it_lies(self, order: Any) -> ndarray:
        """The view whose row-major order is that order of this array."""
        if letter(order) == "K":
            if 0 in self.strides:  # elements that are repeated follow each other as in a result of the array
                node = make_node("convert", (self,), (self.dtype,), self.dtype, self.shape)
                return self.transpose(*nested(pending(node, (self,)).strides))
            return self.transpose(*nested(self.strides))
        return self.transpose() if turns(self, order) else self

    def flatten(self, order: Any = "C") -> ndarray:
        """A copy of all elements in one dimension, in an order C, F, A or K."""
        source = self if order == "C" else self._as_it_lies(order)
        made = empty(self.size, self.dtype)
        write(made._view_only(source.shape), source)
        return made

    def copy(self, order: Any = "C") -> ndarray:
        """A copy in an order: C row-major, F column-major, A and K as it lies in memory."""
        made: ndarray = _lazy.made_copy(self) if order == "C" else copied(self, order)
        return made

    def astype(
        self, dtype: Any, order: Any = "K", casting: Any = "unsafe", subok: bool = True, copy: bool = True
    ) -> ndarray:
        """The elements converted to another type.

        Parameters
        ----------
        dtype : optional
            What ``numpy.dtype`` takes.
        order : str
            C row-major, F column-major, K as it was, A column-major if it was that.
        casting : str
            Which conversions are allowed, as for ``numpy.can_cast``.
        subok : bool
            Means nothing here.
        copy : bool
            Whether an array of that type is copied.

        Returns
        -------
        ndarray
        """
        to = known_type(dtype)
        if casting != "unsafe" and not numpy.can_cast(self.dtype, to, casting):
            raise TypeError(f"Cannot cast array data from {self.dtype!r} to {to!r} according to the rule {casting!r}")
        if to == self.dtype:
            same: ndarray = copied(self, order) if copy else in_order(self, order)
            return same
        how = letter(order, "K")
        if how == "K" and 0 in self.strides:  # as a copy lies, which is not how results of expressions do
            axes = nested(self.strides)
            turned: ndarray = self.transpose(*axes).astype(to, "C").transpose(*undone(axes))
            return turned
        made: ndarray = pending(make_node("convert", (self,), (to,), to, self.shape), (self,), how)
        return made

    def squeeze(self, axis: Any = None) -> ndarray:
        """The view without dimensions of one element: without those in `axis`, or all."""
        axes = _axes(axis_or_all(axis, self.ndim), self.ndim)
        gone = [axis for axis in axes if self.shape[axis] == 1]
        if axis is not None and len(gone) != len(axes):
            raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
        keep = [i for i in range(self.ndim) if i not in gone]
        self._compute_now()
        return self._view_of([self.shape[i] for i in keep], [self.strides[i] for i in keep])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"'ndarray' object has no attribute {name!r}")
        near = nearest(name, dir(type(self)), _INSTEAD.get(name))
        if hasattr(numpy.ndarray, name):
            raise AttributeError(f"ndarray.{name} is not in cupola.numpy yet{near}")
        raise AttributeError(f"'ndarray' object has no attribute {name!r}{near}")

    # --- NumPy's functions of these arrays ----------------------------------------------------------------

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        ours = UFUNCS.get(function.__name__)
        outs = keywords.pop("out", None) or ()
        if not all([isinstance(one, _KNOWN) for one in (*inputs, *outs)]):
            return NotImplemented
        if ours is None:
            (namespace,) = NAMESPACE
            ours = getattr(namespace, function.__name__, None)
            if ours is None or not hasattr(ours, method):
                raise TypeError(f"numpy.{function.__name__} is not in cupola.numpy yet")
        if outs:
            keywords["out"] = outs if len(outs) > 1 else outs[0]
        # NumPy hands its scalars on as arrays of no dimensions.
        inputs = tuple([one[()] if isinstance(one, numpy.ndarray) and one.ndim == 0 else one for one in inputs])
        return getattr(ours, method)(*inputs, **keywords)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if not all([issubclass(one, (ndarray, numpy.ndarray)) for one in types]):
            return NotImplemented
        (found,) = NAMESPACE
        path = f"{function.__module__}.{function.__name__}"
        for name in path.split(".")[1:]:
            if name not in found.__all__:
                raise TypeError(f"{path} is not in cupola.numpy yet")
            found = getattr(found, name)
        return found(*args, **kwargs)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        (namespace,) = NAMESPACE
        if api_version not in (None, *STANDARDS):
            raise ValueError(
                f"version {api_version!r} of the Array API is not known; {STANDARDS[-1]} is the last one here"
            )
        return namespace


# Versions of the Array API standard.
STANDARDS = ("2021.12", "2022.12", "2023.12", "2024.12")
_KNOWN = (*_NUMBERS, Array, numpy.ndarray, numpy.generic, list, tuple)


def _power(reflected: bool = False, in_place: bool = False) -> Any:
    def method(self: ndarray, other: Any) -> Any:
        if not isinstance(other, _KNOWN):
            return NotImplemented
        operands = (other, self) if reflected else (self, other)
        return elementwise(UFUNCS["power"], operands, self if in_place else None, None, "same_kind")

    return method


setattr(ndarray, "__pow__", _power())  # noqa: B010 - what mypy does not want assigned
setattr(ndarray, "__rpow__", _power(reflected=True))  # noqa: B010
setattr(ndarray, "__ipow__", _power(in_place=True))  # noqa: B010


# --- making arrays --------------------------------------------------------------------------------------------


def known_type(dtype: Any) -> numpy.dtype:
    """The dtype for what ``numpy.dtype`` takes; TypeError if arrays of it do not exist here."""
    found = element_type(dtype)
    if found.char not in MEMORY or not found.isnative:
        raise TypeError(
            f"cupola.numpy has no arrays of {found}; it has bool, integers, float16 to 64 and complex numbers"
        )
    return found


def empty(shape: Any, dtype: Any = None, order: Any = "C", *, device: Any = None) -> ndarray:
    """An array whose elements are whatever the memory holds, as ``numpy.empty``."""
    if device is not None:
        on(device)
    if order != "C" and is_column_major(order):
        return empty(extents_of(shape)[::-1], dtype).transpose()
    made = _lazy.made_empty(shape, dtype)
    if made is not None:
        return made
    queue = current_stream()
    return adopt(new_memory(shape, known_type(dtype), queue), queue)


def on(place: Any) -> None:
    """Check a `device` argument."""
    if place is None:
        return
    here = current_device()
    if place != here:
        raise ValueError(
            f"arrays are made on the current device, {here}, not on {place!r}; "
            "set_current() of a cupola.Device makes another one current"
        )


def array(
    object: Any, dtype: Any = None, *, copy: bool | None = True, order: Any = "K", subok: bool = False, ndmin: int = 0
) -> ndarray:
    """An array with the elements of another one, as ``numpy.array``: a copy, unless `copy` is None or False."""
    obj = object
    found: ndarray
    if order != "K" or ndmin or not copy:
        wanted = as_on_host(obj, order)
        if copy is False:
            found = uncopied(obj, dtype, wanted)
        elif isinstance(obj, ndarray):
            kept = obj.dtype if dtype is None else known_type(dtype)
            found = brought_here(obj).astype(kept, wanted, copy=bool(copy))
        else:
            found = in_order(array(obj, dtype), wanted)
        return found._part((*[None] * (ndmin - found.ndim), ...)) if found.ndim < ndmin else found
    to = None if dtype is None else known_type(dtype)
    if isinstance(obj, ndarray):
        found = brought_here(obj)
        if to is not None and to != found.dtype:
            return found.astype(to)
        if found is obj:
            found = copied(found, "K")
        return found
    queue = current_stream()
    if isinstance(obj, (list, tuple)) and _has_arrays(obj):
        made = _joined(obj)
        return made if to is None else made.astype(to, copy=False)
    if isinstance(obj, Array) or hasattr(obj, "__cuda_array_interface__"):
        made = adopt(device().array(obj, stream=queue), queue)
        return made if to is None else made.astype(to, copy=False)
    host = numpy.asarray(obj, to)
    if host.ndim > 1 and not host.flags.c_contiguous:
        axes = nested(host.strides)
        if axes != list(range(host.ndim)):
            return array(host.transpose(axes)).transpose(undone(axes))
    with noted("copy"):
        # Nobody else knows the memory of what was made of a list; other classes may have given an array that they have.
        taken = _lazy.made_of(host) if type(obj) in (list, tuple) and host.ndim else None
        if taken is not None:
            return taken
        known_type(host.dtype)
        if not allocates():
            return adopt(device().array(host, stream=queue), queue)
        memory = new_memory(host.shape, host.dtype, queue)
        memory.copy_from(host, stream=queue)
        return adopt(memory, queue)


def uncopied(obj: Any, dtype: Any, order: str) -> ndarray:
    """An array itself; ValueError if it would have to be copied for this type and order."""
    if not isinstance(obj, ndarray):
        why = "they are in the memory of the host"
    elif dtype is not None and known_type(dtype) != obj.dtype:
        why = f"they are {obj.dtype}"
    elif obj._place() not in (-1, device().device_id):
        why = "they are on another device"
    elif not has_order(obj, order):
        why = f"they do not lie in the order {order!r}"
    else:
        return obj
    raise ValueError(f"copy=False: the elements can only be had in a copy, as {why}; copy=None makes one where it must")


def as_on_host(obj: Any, order: Any) -> str:
    """The order that is asked for; of an array of the host, A means F if it is column-major."""
    found = letter(order, "K")
    return "F" if found == "A" and isinstance(obj, numpy.ndarray) and obj.flags.fnc else found


def brought_here(x: ndarray) -> ndarray:
    """The array, or a copy on the current device if it is on another one; waits for the copy."""
    here = device()
    if x._place() in (-1, here.device_id):
        return x
    with noted("wait"):
        with own_device(x):
            piece = x if x.is_contiguous else x.copy()
            piece._compute_now()
            Device(x._place()).sync()
        made = empty(x.shape, x.dtype)
        made._plain().copy_from(piece._plain(), stream=made._stream)
        made._stream.sync()  # the other device may free its memory, which no stream here orders
    return made


def on_device(obj: Any) -> ndarray:
    """What a function was given, as an array of the device. An array of the host is not copied there silently."""
    if isinstance(obj, ndarray):
        return obj
    if isinstance(obj, numpy.ndarray):
        raise TypeError(
            "an array of NumPy, which is in the memory of the host, beside those of cupola.numpy: "
            "cupola.numpy.asarray(a) copies it to the device"
        )
    return array(obj)


_PYTHON_NUMBERS = frozenset(_NUMBERS)


def _has_arrays(values: Any) -> bool:
    """Whether there are arrays of the device in nested sequences."""
    if isinstance(values, (list, tuple)):
        return not _PYTHON_NUMBERS.issuperset(map(type, values)) and any(map(_has_arrays, values))
    return isinstance(values, ndarray)


def _joined(values: Any) -> ndarray:
    """Nested sequences with arrays of the device among them, as an array, which the device puts together."""
    parts = [_joined(one) if isinstance(one, (list, tuple)) else array(one) for one in values]
    shapes = {one.shape for one in parts}
    if len(shapes) > 1:
        raise ValueError(f"the parts of a sequence have different shapes: {', '.join(map(str, sorted(shapes)))}")
    made = empty((len(parts), *parts[0].shape), numpy.result_type(*[one.dtype for one in parts]))
    for k, one in enumerate(parts):
        write(made._part(k), one)
    return made


# --- expressions ----------------------------------------------------------------------------------------------


def _operand(value: Any, weak: numpy.dtype | None = None) -> Any:
    """What may be in an expression: an ndarray, a NumPy scalar; a Python number becomes one of the type `weak`."""
    if isinstance(value, ndarray):
        return value
    if is_weak(value):
        return weak.type(value) if weak is not None else value
    if isinstance(value, numpy.generic):
        known_type(value.dtype)
        return value
    return on_device(value)


def broadcast(x: ndarray, shape: tuple[int, ...]) -> ndarray:
    """A view of another shape, in which elements appear several times."""
    if x.shape == shape:
        return x
    if len(x.shape) > len(shape) or numpy.broadcast_shapes(x.shape, shape) != shape:
        raise ValueError(f"an array of shape {x.shape} cannot be broadcast to the shape {shape}")
    x._compute_now()
    own = [0 if extent == 1 else stride for extent, stride in zip(x.shape, x.strides, strict=True)]
    return x._view_of(shape, [0] * (len(shape) - len(own)) + own)


def elementwise(
    function: Any, operands: tuple[Any, ...], out: Any, dtype: Any, casting: Any, where: Any = True, order: Any = "K"
) -> Any:
    """Call of a ufunc."""
    given = [_operand(operand) for operand in operands]
    kinds = tuple(_kind(operand) for operand in given)
    loop = function.loop(kinds, dtype, casting)
    check_power(function, loop[0], given[-1])
    if function.__name__ in _lazy.COMPARISONS:
        seen = tuple([_comparable(operand, to) for operand, to in zip(given, loop, strict=False)])
        if any([one is not other for one, other in zip(seen, given, strict=True)]):
            return elementwise(function, seen, out, dtype, casting, where, order)
    values = [to.type(operand) if is_weak(operand) else operand for operand, to in zip(given, loop, strict=False)]
    shapes = [getattr(value, "shape", ()) for value in values]
    shape = shapes[0] if all(one == shapes[0] for one in shapes) else numpy.broadcast_shapes(*shapes)
    if where is not True:
        chosen = mask_of(where)
        shape = numpy.broadcast_shapes(shape, chosen.shape)
    node = make_node(function.__name__, tuple(values), loop[:-1], loop[-1], shape)
    if out is None:
        return pending(node, tuple(values), letter(order, "K"))
    check_out(function, 0, out, loop[-1], shape, casting)
    if where is not True:
        node = make_node(
            "where", (chosen, pending(node), out), (numpy.dtype(bool), out.dtype, out.dtype), out.dtype, out.shape
        )
    write(out, node)
    return out


def check_power(function: Any, dtype: numpy.dtype, exponent: Any) -> None:
    """Refuse integers to the power of a negative integer of Python; those of arrays would have to be waited for."""
    if function.__name__ == "power" and dtype.kind in "iu" and type(exponent) is int and exponent < 0:
        raise ValueError("Integers to negative integer powers are not allowed.")


def _comparable(operand: Any, to: numpy.dtype) -> Any:
    """An operand of a comparison; of an integer of Python beyond those of the type, an infinity."""
    if type(operand) is int and to.kind in "iu":
        limits = numpy.iinfo(to)
        if not limits.min <= operand <= limits.max:
            return float("inf") if operand > 0 else -float("inf")
    return operand


def mask_of(where: Any) -> ndarray:
    """What a `where` argument says of elements: an array must be one of bool."""
    if not isinstance(where, ndarray):
        return on_device(where).astype(bool, copy=False)
    if where.dtype != bool:
        raise TypeError(
            f"Cannot cast array data from {where.dtype!r} to dtype('bool') according to the rule 'safe': it is where="
        )
    return where


def mask_for(values: ndarray, where: Any) -> ndarray:
    """The mask of a reduction, which may be broadcast to the elements, and not they to the mask."""
    mask = mask_of(where)
    if mask.ndim > values.ndim:
        raise ValueError("input operand has more dimensions than allowed by the axis remapping")
    shape = numpy.broadcast_shapes(values.shape, mask.shape)
    if shape != values.shape:
        raise ValueError(
            f"non-broadcastable operand with shape {values.shape} doesn't match the broadcast shape {shape}"
        )
    return mask


def check_out(function: Any, place: int, out: Any, dtype: numpy.dtype, shape: tuple[int, ...], casting: Any) -> None:
    """Refuse an array that cannot get a ufunc's result of this number, type and shape."""
    if isinstance(out, tuple):
        raise ValueError("The 'out' tuple must have exactly one entry per ufunc output")
    if not isinstance(out, ndarray):
        raise TypeError(f"out must be an array of cupola.numpy, got {type(out).__name__}")
    if dtype is not out.dtype and not numpy.can_cast(dtype, out.dtype, casting):
        refused = numpy._core._exceptions._UFuncOutputCastingError  # type: ignore[attr-defined]
        raise refused(function._numpy, casting, dtype, out.dtype, place)
    if out.shape != shape and numpy.broadcast_shapes(out.shape, shape) != out.shape:
        raise ValueError(f"non-broadcastable output operand with shape {out.shape} doesn't match the shape {shape}")


def _kind(operand: Any) -> Any:
    if isinstance(operand, bool):
        return numpy.dtype(bool)
    return type(operand) if is_weak(operand) else operand.dtype


def into(out: ndarray | None, made: ndarray, casting: Any = "unsafe") -> ndarray:
    """A result, or the array that gets it, which must have its shape, and a type that `casting` allows."""
    if out is None:
        return made
    if not isinstance(out, ndarray) or out.shape != made.shape:
        raise ValueError(f"out must be an array of cupola.numpy of shape {made.shape}")
    if not numpy.can_cast(made.dtype, out.dtype, casting):
        raise TypeError(f"Cannot cast the result from {made.dtype!r} to {out.dtype!r} by the rule {casting!r}")
    write(out, made)
    return out


# --- reductions -----------------------------------------------------------------------------------------------


def _axes(axis: Any, ndim: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(ndim))
    return numpy.lib.array_utils.normalize_axis_tuple(axis, ndim)


def one_axis(axis: Any, ndim: int) -> int:
    """An axis counted from the first; a TypeError for several, as in NumPy."""
    return numpy.lib.array_utils.normalize_axis_index(operator.index(axis), ndim)


def axis_or_all(axis: Any, ndim: int) -> Any:
    """The axis, but None for 0 and -1 of an array without dimensions, which many of NumPy's functions allow."""
    return None if ndim == 0 and axis in (0, -1) else axis


def check_truth(how: str, dtype: Any) -> None:
    """Refuse to compute whether any or all elements are true in another type than bool."""
    if how in ("any", "all") and dtype is not None and numpy.dtype(dtype) != bool:
        raise TypeError(f"No loop matching the specified signature and casting was found for ufunc {REDUCED_BY[how]}")


def _accumulator(how: str, dtype: numpy.dtype) -> numpy.dtype:
    if how in ("any", "all"):
        return numpy.dtype(bool)
    if how in ("sum", "prod") and dtype.kind in "biu" and dtype.itemsize < 8:
        return numpy.dtype("uint64" if dtype.kind == "u" else "int64")
    return dtype


# The ufunc of each reduction.
REDUCED_BY = {
    "sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum", "any": "logical_or", "all": "logical_and",
}  # fmt: skip


def _reduce(
    how: Any, obj: Any, axis: Any, dtype: Any, out: Any, keepdims: bool, initial: Any = None, where: Any = True
) -> ndarray:
    """Combine elements along axes: a reduction of any form."""
    values = on_device(obj)
    if isinstance(axis, list):
        raise TypeError("'list' object cannot be interpreted as an integer: several axes are a tuple")
    axes = _axes(axis_or_all(axis, values.ndim), values.ndim)
    check_truth(how, dtype)
    to = known_type(dtype) if dtype is not None else _accumulator(how, values.dtype)
    if where is not True:
        if how in ("max", "min") and initial is None:
            raise ValueError(
                f"reduction operation '{REDUCED_BY[how]}' does not have an identity, so to use a where mask one has to "
                "specify 'initial'"
            )
        alone = values.dtype.type({"sum": 0, "prod": 1, "any": False, "all": True}.get(how, initial))
        mask = mask_for(values, where)
        kinds = (numpy.dtype(bool), values.dtype, values.dtype)
        values = pending(make_node("where", (mask, values, alone), kinds, values.dtype, values.shape), (values,))
    if initial is not None:
        made = _initial(how, values, axes, to, keepdims, initial)
        return into(out, made)
    count = 1
    for one in axes:
        count *= values.shape[one]
    if count == 0 and how in ("max", "min"):
        raise ValueError(f"zero-size array to reduction operation {REDUCED_BY[how]} which has no identity")
    # Sums of halves are computed as float32, as NumPy does inside.
    inner = numpy.dtype("float32") if to.char == "e" and how in ("sum", "prod") else to
    queue = current_stream()
    if values._node is None:
        values._join()
    result = reduce_along(how, values, axes, inner, queue)
    if inner != to:
        result = result.astype(to)
    if keepdims:
        result = result._part(tuple([None if k in axes else slice(None) for k in range(values.ndim)]))
    return into(out, result)


def _initial(how: str, values: ndarray, axes: Any, to: numpy.dtype, keepdims: bool, initial: Any) -> ndarray:
    """A reduction that begins with a value."""
    if isinstance(initial, complex) and to.kind != "c":
        raise TypeError(f"initial is complex, and the result is one of {to}")
    if how in ("max", "min") and 0 in [values.shape[axis] for axis in axes]:
        shape = [1 if k in axes else extent for k, extent in enumerate(values.shape)]
        made = empty(shape if keepdims else [extent for k, extent in enumerate(shape) if k not in axes], to)
        made.fill(initial)
        return made
    combined: ndarray = UFUNCS[REDUCED_BY[how]](reduce(how, values, axes, to, None, keepdims), initial)
    return combined.astype(to, copy=False)


def counted(where: Any, shape: tuple[int, ...], axis: Any, keepdims: bool) -> ndarray:
    """How many elements of an array of that shape a mask has along axes."""
    return reduce("sum", broadcast(mask_of(where), shape), axis, numpy.int64, None, keepdims)


def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = True
) -> ndarray:
    """The mean of the elements, as ``numpy.mean``."""
    if dtype is None and out is None and keepdims is False and where is True:
        usual = _lazy.mean(a, axis)
        if usual is not None:
            return usual
    values = on_device(a)
    to = known_type(dtype) if dtype is not None else values.dtype if values.dtype.kind in "fc" else numpy.dtype(float)
    inner = numpy.dtype("float32") if to.char == "e" else to
    count = 1
    for one in _axes(axis, values.ndim):
        count *= values.shape[one]
    total = reduce("sum", values, axis, None if inner == values.dtype else inner, None, keepdims, None, where)
    by: Any = inner.type(count)
    if where is not True:
        by = counted(where, values.shape, axis, keepdims).astype(inner)
    result: ndarray = UFUNCS["divide"](total, by).astype(to, copy=False)
    return into(out, result)


def _general(function: Any, operands: tuple[Any, ...], out: Any) -> Any:
    """A call that the quick way leaves: shapes that differ, lists, results of another type."""
    return elementwise(function, operands, out, None, "same_kind")


_lazy.use(array_class=ndarray, general=_general, reduce=_reduce)
quick_operators(ndarray)
quick_end(ndarray)
_lazy.use_functions(UFUNCS, _KNOWN)
