"""ElementwiseKernel and ReductionKernel: operations of the program on elements, compiled for their types."""

from __future__ import annotations

import ctypes
import functools
import math
import operator
from typing import Any

import numpy

from cupola.core.launch._launch import launch
from cupola.core.launch._launch_config import LaunchConfig
from cupola.numpy._ndarray import broadcast, empty, is_weak, known_type, ndarray
from cupola.numpy._sharing import handed_over
from cupola.standins.cupy._raw import compile_source
from cupola.standins.cupy.cuda.stream import core_stream

MOST_BLOCKS = 4096
BLOCK = 128
TYPES = {
    "?": "bool", "b": "signed char", "B": "unsigned char", "h": "short", "H": "unsigned short", "i": "int",
    "I": "unsigned int", "l": "long long", "L": "unsigned long long", "q": "long long", "Q": "unsigned long long",
    "e": "float16", "f": "float", "d": "double", "F": "complex<float>", "D": "complex<double>",
}  # fmt: skip


class Parameter:
    """A parameter such as ``T x``, ``raw float32 y`` or ``int32 n``."""

    def __init__(self, text: str) -> None:
        words = text.split()
        self.raw = "raw" in words[:-2]
        if not words[2 + self.raw :] == [] or len(words) < 2 or not words[-1].isidentifier():
            raise ValueError(
                f"a parameter is a type and a name, such as 'T x' or 'raw float32 y', not {text.strip()!r}"
            )
        self.kind, self.name = words[-2:]
        self.is_letter = len(self.kind) == 1
        self.dtype = None if self.is_letter else known_type(self.kind)


def parameters(text: str) -> list[Parameter]:
    """The parameters in a text, between commas."""
    return [Parameter(one) for one in text.split(",") if one.strip()]


def types(wanted: list[Parameter], values: list[Any]) -> dict[str, numpy.dtype]:
    """The types that letters stand for, by the arrays that are given; numbers of Python follow.

    Raises
    ------
    TypeError
        When a letter would be two, or an array has not the type of its parameter.
    """
    found: dict[str, numpy.dtype] = {}
    for weak in (False, True):
        for parameter, value in zip(wanted, values, strict=True):
            if is_weak(value) != weak:
                continue
            dtype: Any
            expected: Any
            if parameter.is_letter:
                dtype = numpy.asarray(value).dtype if weak else value.dtype
                expected = found.setdefault(parameter.kind, dtype)
            else:
                dtype, expected = getattr(value, "dtype", None), parameter.dtype
            if not weak and isinstance(value, ndarray) and dtype != expected:
                raise TypeError(f"Type is mismatched. {parameter.name} {dtype} {expected}")
    return found


class Given:
    """An argument of a kernel, with its type and how the kernel reads it."""

    def __init__(self, parameter: Parameter, value: Any, dtype: numpy.dtype) -> None:
        self.parameter, self.value, self.dtype = parameter, value, dtype
        self.in_one_piece = False

    @property
    def is_array(self) -> bool:
        """bool: an array, not a number."""
        return isinstance(self.value, ndarray)

    @property
    def declaration(self) -> str:
        """str: as a parameter of the kernel."""
        kind = TYPES[self.dtype.char]
        if not self.is_array:
            return f"const {kind} {self.parameter.name}"
        name = self.parameter.name if self.parameter.raw else f"_raw_{self.parameter.name}"
        return f"const CArray<{kind}, {self.value.ndim}, {str(self.in_one_piece).lower()}> {name}"

    def read(self, index: str, result: bool) -> str:
        """A statement that names the element."""
        if not self.is_array or self.parameter.raw:
            return ""
        name = self.parameter.name
        return f"{'' if result else 'const '}{TYPES[self.dtype.char]}& {name} = _raw_{name}[{index}];"

    def passed(self, queue: Any) -> Any:
        """What the launch is given."""
        if not self.is_array:
            return scalar(self.value, self.dtype)
        plain = handed_over(self.value, queue)
        return layout(int(plain.handle) if plain.size else 0, plain.size, plain.shape, plain.strides)


def scalar(value: Any, dtype: numpy.dtype) -> Any:
    """A number as a kernel takes it: a half is two bytes."""
    made = dtype.type(value)
    return ctypes.c_uint16(int(made.view(numpy.uint16))) if dtype.char == "e" else made


@functools.cache
def _layout(ndim: int) -> type[ctypes.Structure]:
    fields = [("data", ctypes.c_uint64), ("size", ctypes.c_int64)]
    fields += [(name, ctypes.c_int64 * max(ndim, 1)) for name in ("shape", "strides")]  # type: ignore[misc]
    return type(f"Layout{ndim}", (ctypes.Structure,), {"_fields_": fields})


def layout(address: int, size: int, shape: Any, strides: Any) -> ctypes.Structure:
    """An array as CArray of carray.cuh."""
    kind = _layout(len(shape))
    extents, steps = (ctypes.c_int64 * max(len(shape), 1)), (ctypes.c_int64 * max(len(shape), 1))
    return kind(address, size, extents(*shape), steps(*strides))


@functools.cache
def _indexer(ndim: int) -> type[ctypes.Structure]:
    fields = [("size", ctypes.c_int64), *[(n, ctypes.c_int64 * max(ndim, 1)) for n in ("shape", "index")]]
    return type(f"Indexer{ndim}", (ctypes.Structure,), {"_fields_": fields})


def indexer(size: int, shape: tuple[int, ...]) -> Any:
    """The index of a loop as CIndexer of carray.cuh."""
    made: Any = _indexer(len(shape))()
    made.size = size
    for axis, extent in enumerate(shape):
        made.shape[axis] = extent
    return made


def check(name: str, values: list[Any]) -> None:
    """Refuse what is neither an array of the device nor a number."""
    for value in values:
        if not isinstance(value, (ndarray, numpy.generic)) and not is_weak(value):
            raise TypeError(f"Unsupported type {type(value)}: {name} takes arrays of cupy and numbers")


def check_results(name: str, results: list[Any]) -> None:
    """Refuse results that are no arrays."""
    for one in results:
        if not isinstance(one, ndarray):
            raise TypeError(f"{name}: a result is an array of cupy, not {type(one).__name__}")


def check_params(name: str, results: tuple[Parameter, ...]) -> None:
    """Refuse a kernel without a name or a result."""
    if not name.isidentifier():
        raise ValueError(f"Invalid kernel name: {name!r}")
    if not results:
        raise ValueError(f"{name} has no parameter for a result")


def typedefs(letters: dict[str, numpy.dtype]) -> str:
    """The letters as types of C++."""
    return "".join(f"typedef {TYPES[dtype.char]} {letter};\n" for letter, dtype in sorted(letters.items()))


@functools.cache
def compiled(source: str, name: str, options: tuple[str, ...], device: int) -> Any:
    """The kernel of a source on a device."""
    return compile_source(source, options).get_kernel(name)


class _WithCodes:
    """A kernel that knows the sources that it was compiled from."""

    def __init__(self) -> None:
        self._codes: dict[tuple[str, ...], str] = {}

    def _noted(self, given: list[Given], source: str) -> str:
        self._codes.setdefault(tuple([one.declaration for one in given]), source)
        return source

    @property
    def cached_codes(self) -> dict[tuple[str, ...], str]:
        """dict: the CUDA C++ of each kind of arguments so far, by the declarations of the parameters."""
        return dict(self._codes)

    @property
    def cached_code(self) -> str:
        """str: the first of these."""
        if not self._codes:
            raise RuntimeError("the kernel has no code before its first call, which tells the types of arguments")
        return next(iter(self._codes.values()))


class ElementwiseKernel(_WithCodes):
    """A function of arrays, whose operation on elements is CUDA C++.

    Parameters
    ----------
    in_params, out_params : str
        Such as ``"T x, raw T y, int32 n"``.
    operation : str
        Statements; ``i`` is the number of the element, ``_ind.size()`` how many there are.
    name : str
        Of the kernel.
    reduce_dims : bool
        Whether dimensions are joined where that is possible.
    preamble : str
        Stands before the kernel.
    no_return, return_tuple : bool
        Whether nothing, or always a tuple, is returned.
    **kwargs
        ``loop_prep``, ``after_loop`` and ``options``.
    """

    def __init__(
        self,
        in_params: str,
        out_params: str,
        operation: str,
        name: str = "kernel",
        reduce_dims: bool = True,
        preamble: str = "",
        no_return: bool = False,
        return_tuple: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self.in_params, self.out_params = tuple(parameters(in_params)), tuple(parameters(out_params))
        check_params(name, self.out_params)
        self.params = self.in_params + self.out_params
        self.nin, self.nout, self.nargs = len(self.in_params), len(self.out_params), len(self.params)
        self.operation, self.name, self.preamble, self.reduce_dims = operation, name, preamble, reduce_dims
        self.no_return, self.return_tuple, self.kwargs = no_return, return_tuple, kwargs
        unknown = set(kwargs) - {"loop_prep", "after_loop", "options"}
        if unknown:
            raise TypeError(f"ElementwiseKernel has no argument {sorted(unknown)[0]!r}")
        names = [one.name for one in self.params]
        if "i" in names:
            raise ValueError("the name i is that of the index")

    def __call__(
        self, *args: Any, size: int | None = None, block_size: int = BLOCK, stream: Any = None, out: Any = None
    ) -> Any:
        """Compute the operation for all elements; arrays for the results may follow."""
        if out is not None:
            args = (*args, *(out if isinstance(out, tuple) else (out,)))
        if len(args) not in (self.nin, self.nargs):
            raise TypeError(f"Wrong number of arguments for {self.name!r}: {self.nin} or {self.nargs}, not {len(args)}")
        check(self.name, list(args))
        letters = types([*self.params[: len(args)]], list(args))
        spread = [v.shape for p, v in zip(self.params, args, strict=False) if isinstance(v, ndarray) and not p.raw]
        if size is not None:
            if spread:
                raise ValueError("Specified 'size' can be used only if all of the ndarray are 'raw'.")
            shape: tuple[int, ...] = (operator.index(size),)
        elif not spread and any(one.raw for one in self.in_params):
            raise ValueError("Loop size is undecided.")
        else:
            shape = numpy.broadcast_shapes(*spread)
        if block_size < 1:
            raise ValueError(f"{self.name}: block_size is {block_size}; a block has a thread at least")
        outs = list(args[self.nin :])
        check_results(self.name, outs)
        if not outs:
            if size is None and any(one.raw for one in self.out_params):
                raise ValueError(f"{self.name}: a raw result has no size; pass an array for it, or size=")
            outs = [empty(shape, self._type(one, letters)) for one in self.out_params]
        for parameter, one in zip(self.out_params, outs, strict=True):
            if not parameter.raw and one.shape != shape:
                raise ValueError(f"Out shape is mismatched: {parameter.name} has {one.shape}, the operation {shape}")
        self._run([*args[: self.nin], *outs], letters, shape, block_size, stream)
        if self.no_return:
            return None
        return tuple(outs) if self.return_tuple or len(outs) != 1 else outs[0]

    def _type(self, parameter: Parameter, letters: dict[str, numpy.dtype]) -> numpy.dtype:
        if parameter.dtype is not None:
            return parameter.dtype
        if parameter.kind not in letters:
            raise ValueError(f"Wrong type: no argument says what {parameter.kind} is, the type of {parameter.name}")
        return letters[parameter.kind]

    def _run(self, values: list[Any], letters: Any, shape: tuple[int, ...], block: int, stream: Any) -> None:
        count = math.prod(shape)
        if not count:
            return
        given = [Given(p, v, self._type(p, letters)) for p, v in zip(self.params, values, strict=True)]
        spread = [one for one in given if one.is_array and not one.parameter.raw]
        for one in given:
            if one.is_array:
                one.value._compute_now()
                one.in_one_piece = one.value.is_contiguous
        joined = self.reduce_dims and all(one.in_one_piece and one.value.shape == shape for one in spread)
        extents = (count,) if joined else shape
        for one in spread:
            one.value = one.value._view_only((count,)) if joined else broadcast(one.value, shape)
            one.in_one_piece = one.value.is_contiguous
        queue = core_stream(stream)
        source = self._noted(given, self._source(given, letters, len(extents)))
        kernel = compiled(source, self.name, tuple(self.kwargs.get("options", ())), queue.device.device_id)
        config = LaunchConfig(grid=min(-(-count // block), MOST_BLOCKS), block=block)
        launch(queue, config, kernel, *[one.passed(queue) for one in given], indexer(count, extents))

    def _source(self, given: list[Given], letters: Any, ndim: int) -> str:
        heads = ", ".join(one.declaration for one in given)
        reads = "\n        ".join(filter(None, (one.read("i", k >= self.nin) for k, one in enumerate(given))))
        return f"""#include <cupy/carray.cuh>
{typedefs(letters)}{self.preamble}
extern "C" __global__ void {self.name}({heads}, CIndexer<{ndim}> _ind) {{
    {self.kwargs.get("loop_prep", "")};
    const long long _step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < _ind.size(); i += _step) {{
        _ind.set(i);
        {reads}
        {self.operation};
    }}
    {self.kwargs.get("after_loop", "")};
}}
"""


class ReductionKernel(_WithCodes):
    """A reduction of arrays, whose steps are CUDA C++.

    Parameters
    ----------
    in_params, out_params : str
        As for ElementwiseKernel.
    map_expr : str
        What is reduced, of the parameters.
    reduce_expr : str
        How ``a`` and ``b`` are combined.
    post_map_expr : str
        An expression that sets the result from ``a``.
    identity : str or number
        The result of nothing.
    name : str
        Of the kernel.
    reduce_type : str, optional
        The type of ``a`` and ``b``; that of the first result by default.
    reduce_dims : bool
        Makes no difference.
    preamble : str
        Stands before the kernel.
    options : tuple of str
        For the compiler.
    """

    def __init__(
        self,
        in_params: str,
        out_params: str,
        map_expr: str,
        reduce_expr: str,
        post_map_expr: str,
        identity: Any,
        name: str = "reduce_kernel",
        reduce_type: str | None = None,
        reduce_dims: bool = True,
        preamble: str = "",
        options: tuple[str, ...] = (),
    ) -> None:
        super().__init__()
        self.in_params, self.out_params = tuple(parameters(in_params)), tuple(parameters(out_params))
        check_params(name, self.out_params)
        self.params = self.in_params + self.out_params
        self.nin, self.nout, self.nargs = len(self.in_params), len(self.out_params), len(self.params)
        self.map_expr, self.reduce_expr, self.post_map_expr = map_expr, reduce_expr, post_map_expr
        self.identity, self.name, self.reduce_type = identity, name, reduce_type
        self.reduce_dims, self.preamble, self.options = reduce_dims, preamble, tuple(options)

    def __call__(
        self, *args: Any, out: Any = None, axis: Any = None, keepdims: bool = False, stream: Any = None
    ) -> Any:
        """Reduce along axes, or over all elements."""
        if out is not None:
            args = (*args, out)
        if len(args) not in (self.nin, self.nargs):
            raise TypeError(f"Wrong number of arguments for {self.name!r}: {self.nin} or {self.nargs}, not {len(args)}")
        check(self.name, list(args))
        check_results(self.name, list(args[self.nin :]))
        letters = types([*self.params[: len(args)]], list(args))
        spread = [v.shape for p, v in zip(self.in_params, args, strict=False) if isinstance(v, ndarray) and not p.raw]
        if not spread:
            raise ValueError(f"{self.name}: at least one array that is not raw")
        shape = numpy.broadcast_shapes(*spread)
        gone = range(len(shape)) if axis is None else numpy.lib.array_utils.normalize_axis_tuple(axis, len(shape))
        kept = [k for k in range(len(shape)) if k not in gone]
        order = [*kept, *[k for k in range(len(shape)) if k in gone]]
        extents = tuple(shape[k] for k in kept)
        count = math.prod(shape[k] for k in gone)
        if not count and self.identity is None:
            raise ValueError(f"zero-size array to reduction operation {self.name} which has no identity")
        full = tuple(1 if k in gone else extent for k, extent in enumerate(shape)) if keepdims else extents
        for one in args[self.nin :]:
            if one.shape != full:
                raise ValueError(f"Out shape is mismatched: {one.shape} was given, the reduction has {full}")
        results = [empty(extents, ElementwiseKernel._type(self, p, letters)) for p in self.out_params]  # type: ignore[arg-type]
        given = []
        for parameter, value in zip(self.params, [*args[: self.nin], *results], strict=True):
            one = Given(parameter, value, ElementwiseKernel._type(self, parameter, letters))  # type: ignore[arg-type]
            if one.is_array and parameter in self.in_params and not parameter.raw:
                one.value = broadcast(value, shape).transpose(*order) if shape else value
            if one.is_array:
                one.value._compute_now()
                one.in_one_piece = one.value.is_contiguous
            given.append(one)
        total = math.prod(extents)
        if total:
            queue = core_stream(stream)
            source = self._noted(given, self._source(given, letters))
            kernel = compiled(source, self.name, self.options, queue.device.device_id)
            config = LaunchConfig(grid=min(total, MOST_BLOCKS), block=256)
            launch(queue, config, kernel, *[one.passed(queue) for one in given], numpy.int64(total), numpy.int64(count))
        results = [array.reshape(full) for array in results]
        if len(args) == self.nargs:
            for target, array in zip(args[self.nin :], results, strict=True):
                target[...] = array
            results = list(args[self.nin :])
        return results[0] if len(results) == 1 else tuple(results)

    def _source(self, given: list[Given], letters: Any) -> str:
        heads = ", ".join(one.declaration for one in given)
        reads = "\n            ".join(filter(None, (one.read("i", False) for one in given[: self.nin])))
        writes = "\n        ".join(filter(None, (one.read("_r", True) for one in given[self.nin :])))
        kind = self.reduce_type or TYPES[given[self.nin].dtype.char]
        if self.reduce_type is not None and len(self.reduce_type) > 1:
            try:
                kind = TYPES[known_type(self.reduce_type).char]
            except TypeError:
                kind = self.reduce_type  # one of the preamble
        start = "_type_reduce()" if self.identity in (None, "") else f"_type_reduce({self.identity})"
        return f"""#include <cupy/carray.cuh>
{typedefs(letters)}{self.preamble}
typedef {kind} _type_reduce;
static __device__ _type_reduce _combined(const _type_reduce a, const _type_reduce b) {{ return ({self.reduce_expr}); }}
extern "C" __global__ void {self.name}({heads}, long long _total, long long _count) {{
    __shared__ __align__(16) char _memory[256 * sizeof(_type_reduce)];
    _type_reduce* _values = (_type_reduce*)_memory;
    for (long long _r = blockIdx.x; _r < _total; _r += gridDim.x) {{
        _type_reduce _value = {start};
        bool _first = true;
        for (long long _j = threadIdx.x; _j < _count; _j += 256) {{
            const long long i = _r * _count + _j;
            {reads}
            const _type_reduce _next = static_cast<_type_reduce>({self.map_expr});
            _value = _first ? _next : _combined(_value, _next);
            _first = false;
        }}
        _values[threadIdx.x] = _value;
        __syncthreads();
        for (int _half = 128; _half; _half /= 2) {{
            if (threadIdx.x < _half && threadIdx.x + _half < _count)
                _values[threadIdx.x] = _combined(_values[threadIdx.x], _values[threadIdx.x + _half]);
            __syncthreads();
        }}
        if (threadIdx.x == 0) {{
            const _type_reduce a = _values[0];
            {writes}
            ({self.post_map_expr});
        }}
        __syncthreads();
    }}
}}
"""
