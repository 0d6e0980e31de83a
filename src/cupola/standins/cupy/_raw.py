"""RawKernel and RawModule: CUDA C++ of the program."""

from __future__ import annotations

import functools
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import cupola
from cupola.core.base._errors import NVRTCError
from cupola.core.program._object_code import ObjectCode
from cupola.numpy._report import noted
from cupola.pathfinder import find_nvidia_binary_utility
from cupola.standins.cupy import _options
from cupola.standins.cupy._errors import CompileException, CUDADriverError, as_cupy
from cupola.standins.cupy.cuda.function import Function, launch_kernel, load_object
from cupola.standins.cupy.cuda.memory import MemoryPointer, pointer_of

INCLUDE = str(Path(__file__).with_name("include"))  # cupy/complex.cuh

# Attributes of kernels, by their names in CuPy and their numbers in CUDA.
ATTRIBUTES = {
    "max_threads_per_block": 0, "shared_size_bytes": 1, "const_size_bytes": 2, "local_size_bytes": 3, "num_regs": 4,
    "ptx_version": 5, "binary_version": 6, "cache_mode_ca": 7, "max_dynamic_shared_size_bytes": 8,
    "preferred_shared_memory_carveout": 9,
}  # fmt: skip
_SETTABLE = ("max_dynamic_shared_size_bytes", "preferred_shared_memory_carveout")


def compile_source(
    source: str, options: tuple[str, ...], names: tuple[str, ...] = (), backend: str = "nvrtc"
) -> ObjectCode:
    """Compile CUDA C++ for the current device, or take it from the disk.

    Raises
    ------
    CompileException
        When it does not compile.
    """
    if backend == "nvcc":
        return _by_nvcc(source, options)
    if backend != "nvrtc":
        raise ValueError(f'Invalid backend: "{backend}"')
    fields = _options.parsed(options)
    fields["include_path"] = [*fields.get("include_path", []), INCLUDE]
    if not fields.get("debug"):
        fields.setdefault("lineinfo", True)  # the CPU device names lines of faults
    if str(fields.get("arch", "")).startswith("compute"):
        del fields["arch"]
    try:
        with noted("compile"):
            return cupola.compile(source, *names, options={"name": "cupy", **fields})
    except NVRTCError as error:
        raise CompileException(str(error), source, "cupy", options, "nvrtc") from None


def _by_nvcc(source: str, options: tuple[str, ...]) -> ObjectCode:
    nvcc = find_nvidia_binary_utility("nvcc")
    if nvcc is None:
        raise RuntimeError(
            "backend='nvcc' needs nvcc: pip install nvidia-cuda-nvcc nvidia-nvvm nvidia-cuda-crt, or use 'nvrtc'"
        )
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder, "kernel.cu"), Path(folder, "kernel.ptx")
        given.write_text(source)
        major, minor = cupola.Device().compute_capability
        command = [nvcc, "-ptx", f"-arch=compute_{major}{minor}", f"-I{INCLUDE}", *options, "-o", made, given]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        if done.returncode:
            raise CompileException(done.stderr, source, str(given), options, "nvcc")
        return ObjectCode.from_ptx(made.read_bytes())


class _WithAttributes:
    """What a kernel needs of registers and memory."""

    kernel: Any

    def _value(self, name: str) -> int:
        return int(self.kernel._kernel._attribute(ATTRIBUTES[name], cupola.Device().device_id))

    @property
    def attributes(self) -> dict[str, int]:
        """dict: all attributes by their names."""
        return {name: self._value(name) for name in ATTRIBUTES}


def _attribute(name: str) -> property:
    def get(self: Any) -> int:
        return int(self._value(name))

    def put(self: Any, value: int) -> None:
        self.kernel._kernel._set_attribute(ATTRIBUTES[name], int(value), cupola.Device().device_id)

    return property(get, put if name in _SETTABLE else None, doc=f"int: the attribute {name}.")


for _name in ATTRIBUTES:
    setattr(_WithAttributes, _name, _attribute(_name))


class RawKernel(_WithAttributes):
    """A kernel of CUDA C++, compiled when it is first needed.

    Parameters
    ----------
    code : str
        CUDA C++ with an ``extern "C"`` kernel of that name.
    name : str
        Of the kernel.
    options : tuple of str
        For the compiler.
    backend : str
        ``"nvrtc"`` or ``"nvcc"``.
    translate_cucomplex : bool
        Whether ``cuComplex.h`` is included for the source.
    enable_cooperative_groups : bool
        Whether launches are cooperative.
    jitify : bool
        Makes no difference: headers are found without it.
    """

    def __init__(
        self,
        code: str,
        name: str,
        options: tuple[str, ...] = (),
        backend: str = "nvrtc",
        translate_cucomplex: bool = False,
        *,
        enable_cooperative_groups: bool = False,
        jitify: Any = None,
    ) -> None:
        self.code, self.name, self.options, self.backend = code, name, tuple(options), backend
        self.enable_cooperative_groups = enable_cooperative_groups
        self.file_path: str | None = None
        self._translate = translate_cucomplex
        self._known: dict[int, Function] = {}  # by device

    @property
    def kernel(self) -> Function:
        """Function: what is launched."""
        device = cupola.Device().device_id
        found = self._known.get(device)
        if found is None:
            code = compile_source(_with_complex(self.code, self._translate), self.options, (), self.backend)
            with as_cupy(CUDADriverError):
                found = self._known[device] = Function(code.get_kernel(self.name))
        return found

    def compile(self, log_stream: Any = None) -> None:
        """Compile now."""
        self.kernel  # noqa: B018 - it is compiled

    def __call__(self, grid: Any, block: Any, args: Any, *, shared_mem: int = 0, stream: Any = None) -> None:
        """Launch the kernel in the current stream, or another one."""
        kernel = self.kernel._kernel
        launch_kernel(kernel, grid, block, args, shared_mem, stream, self.enable_cooperative_groups)

    def __reduce__(self) -> Any:
        again = functools.partial(RawKernel, enable_cooperative_groups=self.enable_cooperative_groups)
        return again, (self.code, self.name, self.options, self.backend, self._translate)


class _ModuleKernel(RawKernel):
    """A kernel of a RawModule."""

    def __init__(self, module: RawModule, name: str) -> None:
        super().__init__(
            module.code or "",
            name,
            module.options,
            module.backend,
            enable_cooperative_groups=module.enable_cooperative_groups,
        )
        self._of, self.file_path = module, module.file_path

    @property
    def kernel(self) -> Function:
        """Function: what is launched."""
        device = cupola.Device().device_id
        found = self._known.get(device)
        if found is None:
            code = self._of._object()
            with as_cupy(CUDADriverError):
                found = self._known[device] = Function(code.get_kernel(self.name), self._of)
        return found

    def __reduce__(self) -> Any:
        return _kernel_of, (self._of, self.name)


def _kernel_of(module: RawModule, name: str) -> RawKernel:
    return module.get_function(name)


class RawModule:
    """CUDA C++ with several kernels and variables, or machine code from a file.

    Parameters
    ----------
    code : str, optional
        CUDA C++; or
    path : str, optional
        a file with a cubin, a fat binary or PTX.
    options, backend, translate_cucomplex, enable_cooperative_groups, jitify
        As for RawKernel.
    name_expressions : sequence of str, optional
        C++ names of kernels that are not ``extern "C"``, such as ``"scale<float>"``.
    """

    def __init__(
        self,
        code: str | None = None,
        *,
        path: str | None = None,
        options: tuple[str, ...] = (),
        backend: str = "nvrtc",
        translate_cucomplex: bool = False,
        enable_cooperative_groups: bool = False,
        name_expressions: Any = None,
        jitify: Any = None,
    ) -> None:
        if (code is None) == (path is None):
            raise TypeError("Exactly one of `code` and `path` keyword arguments must be given.")
        if path is not None and options:
            raise ValueError("options cannot be set when path is given")
        if name_expressions is not None and code is None:
            raise ValueError("name_expressions can be specified only if code is given")
        if name_expressions is not None and backend != "nvrtc":
            raise ValueError("name_expressions works with backend='nvrtc' only")
        self.code, self.file_path, self.backend = code, path, backend
        self.options = tuple(options)
        self.enable_cooperative_groups = enable_cooperative_groups
        self.name_expressions = None if name_expressions is None else tuple(name_expressions)
        self._translate = translate_cucomplex
        self._known: dict[int, ObjectCode] = {}

    def _object(self) -> ObjectCode:
        device = cupola.Device().device_id
        found = self._known.get(device)
        if found is None:
            found = self._known[device] = self._made()
        return found

    def _made(self) -> ObjectCode:
        if self.code is not None:
            source = _with_complex(self.code, self._translate)
            return compile_source(source, self.options, self.name_expressions or (), self.backend)
        assert self.file_path is not None
        return load_object(Path(self.file_path).read_bytes())

    @property
    def module(self) -> Any:
        """cupola.ObjectCode: what is loaded."""
        return self._object()

    def compile(self, log_stream: Any = None) -> None:
        """Compile now."""
        self._object()

    def get_function(self, name: str) -> RawKernel:
        """A kernel, by its name or one of `name_expressions`; a CUDADriverError if there is none."""
        found = _ModuleKernel(self, name)
        found.compile()
        return found

    def get_global(self, name: str) -> MemoryPointer:
        """A variable of the device."""
        code = self._object()
        with as_cupy(CUDADriverError):
            return pointer_of(code.get_global(name))

    def __reduce__(self) -> Any:
        again = functools.partial(
            RawModule,
            path=self.file_path,
            options=self.options,
            backend=self.backend,
            translate_cucomplex=self._translate,
            enable_cooperative_groups=self.enable_cooperative_groups,
            name_expressions=self.name_expressions,
        )
        return again, (self.code,)


def _with_complex(code: str, translate: bool) -> str:
    return "#include <cuComplex.h>\n" + code if translate else code
