"""Kernels that the program writes itself, with the interfaces that CuPy's users know."""

from __future__ import annotations

import ctypes
import functools
import re
from typing import Any

import numpy

from cupola.core.device._stream import Stream
from cupola.core.launch._launch import launch
from cupola.core.launch._launch_config import LaunchConfig
from cupola.numpy import _lazy, _ndarray
from cupola.numpy._evaluate import current_stream
from cupola.numpy._kernels import BLOCK, _places, compiled, layout_parameter, layout_struct, preamble
from cupola.numpy._lazy import layout
from cupola.numpy._ndarray import broadcast, empty, ndarray, on_device
from cupola.numpy._operations import COMPUTED, MEMORY
from cupola.numpy._sharing import handed_over

__all__ = ["ElementwiseKernel", "RawKernel", "ReductionKernel"]


class _Parameter:
    """A parameter such as ``T x``, ``raw float32 y`` or ``int32 n``."""

    def __init__(self, text: str) -> None:
        words = text.split()
        self.raw = words[0] == "raw"
        if len(words) != 2 + self.raw or not words[-1].isidentifier():
            raise ValueError(f"a parameter is a type and a name, such as 'T x' or 'raw float32 y', not {text!r}")
        self.kind, self.name = words[-2:]
        self.letter = len(self.kind) == 1 and self.kind.isupper()


def _parameters(text: str) -> list[_Parameter]:
    return [_Parameter(one) for one in text.split(",") if one.strip()]


def _types(parameters: list[_Parameter], values: list[Any]) -> dict[str, numpy.dtype]:
    """The types that letters stand for, by the arrays that are given; numbers of Python follow."""
    found: dict[str, numpy.dtype] = {}
    for weak in (False, True):
        for parameter, value in zip(parameters, values, strict=True):
            if not parameter.letter or _ndarray.is_weak(value) != weak or (weak and parameter.kind in found):
                continue
            dtype = numpy.asarray(value).dtype if weak else value.dtype
            if found.setdefault(parameter.kind, dtype) != dtype:
                raise TypeError(
                    f"{parameter.kind} would be both {found[parameter.kind]} and {dtype} ({parameter.name})"
                )
    return found


class ElementwiseKernel:
    """ElementwiseKernel(in_params, out_params, operation, name="kernel", *, preamble="")\n--\n\nA function of arrays, \
whose operation on elements is CUDA C++.

    Parameters
    ----------
    in_params, out_params : str
        Parameters such as ``"T x, raw T y, int32 n"``: a type of NumPy, or a letter that stands for the type of what is
        given. A ``raw`` array is not broadcast; the operation indexes it itself.
    operation : str
        Statements. ``i`` is the number of the element, ``_ind.size()`` how many there are.
    name : str
        Of the kernel.
    preamble : str
        Source that stands before the kernel.

    Examples
    --------
    >>> squared = np.ElementwiseKernel("T x, T y", "T z", "z = (x - y) * (x - y)", "squared")
    >>> squared(np.arange(3), 1)
    array([1, 0, 1])
    """

    def __init__(
        self, in_params: str, out_params: str, operation: str, name: str = "kernel", *, preamble: str = ""
    ) -> None:
        self._in, self._out = _parameters(in_params), _parameters(out_params)
        if not self._out:
            raise ValueError("at least one parameter of out_params")
        if not name.isidentifier():
            raise ValueError(f"name must be a name of C++, not {name!r}")
        self.operation, self.name, self.preamble = operation, name, preamble
        self._kernel = functools.cache(self._compile)

    def __call__(self, *args: Any, size: int | None = None, block_size: int = BLOCK) -> Any:
        """Compute the operation for all elements.

        Parameters
        ----------
        *args : array_like
            Arrays and numbers for in_params; arrays for out_params may follow.
        size : int, optional
            How many elements there are, if all arrays are raw.
        block_size : int
            Threads of a block.

        Returns
        -------
        ndarray or tuple of ndarray
        """
        count = len(self._in)
        if len(args) not in (count, count + len(self._out)):
            raise TypeError(
                f"{self.name} takes {count} arguments, or {count + len(self._out)} with results, not {len(args)}"
            )
        values = [_ndarray._operand(value) for value in args[:count]]
        outs = list(args[count:])
        letters = _types([*self._in, *(self._out if outs else [])], [*values, *outs])
        shapes = [v.shape for p, v in zip(self._in, values, strict=True) if isinstance(v, ndarray) and not p.raw]
        shapes += [v.shape for p, v in zip(self._out, outs, strict=False) if not p.raw]
        if not shapes and size is None:
            raise ValueError(f"{self.name}: size= is needed, as all arrays are raw")
        shape = (size,) if size is not None else numpy.broadcast_shapes(*shapes)
        if not outs:
            outs = [empty(shape, self._type(parameter, letters)) for parameter in self._out]
        queue = current_stream()
        arrays: list[ndarray] = []
        scalars: list[Any] = []
        signature: list[str] = []
        for parameter, value in zip([*self._in, *self._out], [*values, *outs], strict=True):
            dtype = self._type(parameter, letters)
            if not isinstance(value, ndarray):
                if parameter.raw:
                    raise TypeError(f"{self.name}: {parameter.name} is raw and must be an array")
                scalars.append(numpy.float32(value) if dtype.char == "e" else dtype.type(value))
                signature.append("scalar " + dtype.char)
                continue
            if value.dtype != dtype:
                raise TypeError(f"{self.name}: {parameter.name} has {value.dtype}, and should have {dtype}")
            if parameter in self._out:
                value._before_writing()
                if not parameter.raw and value.shape != shape:
                    raise ValueError(f"{self.name}: {parameter.name} has shape {value.shape}, the operation {shape}")
            elif parameter.raw and not value.is_contiguous:
                value = value.copy()  # its elements are numbered in row-major order
            value._compute_now()
            value._join(queue, parameter.raw or parameter in self._out)
            if parameter.raw and not value.is_contiguous:
                raise ValueError(f"{self.name}: {parameter.name} is raw and must lie in one piece; copy() makes that")
            arrays.append(value if parameter.raw else broadcast(value, shape))
            signature.append(("raw " if parameter.raw else "array ") + dtype.char)
        plain = [one._plain() for one in arrays]
        spread = [one for one, text in zip(plain, [s for s in signature if s[0] != "s"], strict=True) if text[0] == "a"]
        modes, axes, numbers = layout(shape, spread)
        more = [(ctypes.c_char * len(numbers)).from_buffer_copy(numbers)] if axes > 0 else []
        n = 1
        for extent in shape:
            n *= extent
        if n:
            kernel = self._kernel(tuple(signature), modes, axes, tuple(sorted(letters.items())))
            config = LaunchConfig(grid=min(-(-n // block_size), _lazy.most_blocks() * 4), block=block_size)
            launch(queue, config, kernel, n, *more, *plain, *scalars)
        for one in outs:
            one._stream = queue
        return outs[0] if len(outs) == 1 else tuple(outs)

    @staticmethod
    def _type(parameter: _Parameter, letters: dict[str, numpy.dtype]) -> numpy.dtype:
        if not parameter.letter:
            return _ndarray.known_type(parameter.kind)
        if parameter.kind not in letters:
            raise TypeError(f"no argument says what {parameter.kind} is, the type of {parameter.name}")
        return letters[parameter.kind]

    def _compile(self, signature: tuple[str, ...], modes: str, axes: int, letters: tuple[Any, ...]) -> Any:
        chars = [text[-1] for text in signature]
        heads: list[str] = []
        before: list[str] = []
        behind: list[str] = []
        numbers: list[str] = []
        spread = k = 0
        for parameter, text in zip([*self._in, *self._out], signature, strict=True):
            char, name = text[-1], parameter.name
            if text[0] == "s":
                numbers.append(f"const {COMPUTED[char]} {name}")
                continue
            result = parameter in self._out
            if text[0] == "r":
                heads.append(f"{'' if result else 'const '}{MEMORY[char]}* {name}")
            else:
                heads.append(f"{'' if result else 'const '}char* _in{k}")
                place = {"c": f"_in{k} + i * sizeof({MEMORY[char]})", "1": f"_in{k}", "g": f"_in{k} + p{spread}"}[
                    modes[spread]
                ]
                if result:
                    before.append(f"{COMPUTED[char]} {name} = *({MEMORY[char]}*)({place});")
                    behind.append(f"*({MEMORY[char]}*)({place}) = ({MEMORY[char]})({name});")
                else:
                    before.append(f"const {COMPUTED[char]} {name} = *(const {MEMORY[char]}*)({place});")
                spread += 1
            k += 1
        names = "".join([f"typedef {COMPUTED[dtype.char]} {letter};\n" for letter, dtype in letters])
        newline = "\n        "
        parameters = ", ".join(heads + numbers)
        source = f"""{preamble((), *chars)}
{layout_struct(spread, axes)}
struct Indexer {{ long long count; __device__ long long size() const {{ return count; }} }};
{names}{self.preamble}
extern "C" __global__ void {self.name}(long long _n{layout_parameter(axes)}, {parameters}) {{
    const Indexer _ind = {{_n}};
    (void)_ind;
    long long _step = (long long)gridDim.x * blockDim.x;
#pragma unroll 1
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < _n; i += _step) {{
        {_places(spread, axes)}
        {newline.join(before)}
        {self.operation};
        {newline.join(behind)}
    }}
}}
"""
        return compiled(source, self.name)


class ReductionKernel:
    """ReductionKernel(in_params, out_params, map_expr, reduce_expr, post_map_expr, identity, name="kernel", \
preamble="")\n--\n\nA reduction of arrays, whose steps are CUDA C++.

    Parameters
    ----------
    in_params, out_params : str
        As for ElementwiseKernel; one result.
    map_expr : str
        What is reduced, of the parameters.
    reduce_expr : str
        How ``a`` and ``b`` are combined.
    post_map_expr : str
        A statement that sets the result from ``a``.
    identity : str or number
        What to begin with.
    name : str
        Of the kernel.
    preamble : str
        Source that stands before the kernels.

    Examples
    --------
    >>> norm = np.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", 0, "norm")
    >>> norm(np.array([3.0, 4.0]))
    array(5.)
    """

    def __init__(
        self, in_params: str, out_params: str, map_expr: str, reduce_expr: str, post_map_expr: str, identity: Any,
        name: str = "kernel", *, preamble: str = "",
    ) -> None:  # fmt: skip
        (result,) = _parameters(out_params)
        self._result = result
        self.name = name
        self._map = ElementwiseKernel(
            in_params, f"{result.kind} _value", f"_value = ({map_expr})", f"{name}_map", preamble=preamble
        )
        self._after = re.sub(r"\ba\b", "_total", post_map_expr)
        self._identity, self._reduce = identity, reduce_expr
        self._post = ElementwiseKernel(
            f"{result.kind} _total", out_params, self._after, f"{name}_after", preamble=preamble
        )

    def __call__(self, *args: Any, axis: Any = None, keepdims: bool = False, out: ndarray | None = None) -> ndarray:
        """Reduce along axes.

        Parameters
        ----------
        *args : array_like
            Arrays and numbers for in_params.
        axis : int, tuple of int or None
            Which dimensions go; None: all.
        keepdims : bool
            Whether they stay, with one element.
        out : ndarray, optional
            Gets the result.

        Returns
        -------
        ndarray
        """
        mapped = self._map(*args)
        combined = _lazy.reduce((str(self._identity), self._reduce), mapped, axis, mapped.dtype, None, keepdims)
        made: ndarray = self._post(combined) if out is None else self._post(combined, out)
        return made


class RawKernel:
    """RawKernel(code, name, options=())\n--\n\nA kernel of CUDA C++ that is called with grid, block and arguments.

    Parameters
    ----------
    code : str
        CUDA C++ with an ``extern "C"`` kernel of that name.
    name : str
        Of the kernel.
    options : tuple of str
        ``-D`` and ``-I`` for the compiler.

    Examples
    --------
    >>> code = 'extern "C" __global__ void twice(double* x) { x[threadIdx.x] *= 2; }'
    >>> twice = np.RawKernel(code, "twice")
    >>> x = np.arange(3.0)
    >>> twice((1,), (3,), (x,))
    >>> x
    array([0., 2., 4.])
    """

    def __init__(self, code: str, name: str, options: tuple[str, ...] = ()) -> None:
        self.code, self.name, self.options = code, name, tuple(options)
        wrong = [one for one in self.options if not one.startswith(("-D", "-I"))]
        if wrong:
            raise ValueError(
                f"RawKernel takes the options -D and -I, not {wrong[0]!r}; cupola.compile takes all others"
            )

    @functools.cached_property
    def kernel(self) -> Any:
        """cupola.Kernel: what is launched."""
        macros = [one[2:] for one in self.options if one.startswith("-D")]
        folders = [one[2:] for one in self.options if one.startswith("-I")]
        more: dict[str, Any] = {}
        if macros:
            more["define_macro"] = [tuple(one.split("=", 1)) if "=" in one else one for one in macros]
        if folders:
            more["include_path"] = folders
        return compiled(self.code, self.name, fma=True, **more)

    def __call__(self, grid: Any, block: Any, args: Any, *, shared_mem: int = 0, stream: Stream | None = None) -> None:
        """Launch the kernel.

        Parameters
        ----------
        grid, block : tuple of int
            Extents.
        args : tuple
            Arrays as pointers, NumPy's scalars as they are; an int is a ``long long``, a float a ``double``.
        shared_mem : int
            Bytes of dynamic shared memory.
        stream : Stream, optional
            Where the launch is queued: by default in the current stream.
        """
        queue = current_stream() if stream is None else stream
        given: list[Any] = []
        for value in args:
            if isinstance(value, ndarray):
                given.append(handed_over(value, queue))
            elif isinstance(value, numpy.ndarray):
                on_device(value)
            elif isinstance(value, bool):
                given.append(numpy.bool_(value))
            elif isinstance(value, int):
                given.append(numpy.int64(value))
            else:
                given.append(numpy.float64(value) if isinstance(value, float) else value)
        launch(queue, LaunchConfig(grid=grid, block=block, shmem_size=shared_mem), self.kernel, *given)
