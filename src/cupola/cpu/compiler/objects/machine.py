"""LLVM IR to machine code in this process, through llvmlite.

Measured on the kernels of the benchmarks: the passes over functions of optimization level 2 give the speed of all of
level 3 in less than half the time, and the loop and SLP vectorizers find nothing to do in code that is made of vectors
already. Those of level 1 leave five percent of the speed and take two thirds of the time, which counts in larger
kernels. In very large ones the time of many passes grows faster than the code: for these, registers stay in memory
(see registers.py), so that nothing lives across blocks, no pass runs that looks at more than an instruction, and beyond
a second limit machine code is made in the simplest way. So the time stays in proportion to the kernel's length.

Object code is kept on disk (see cache.py), so a kernel is compiled once for each computer.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import platform
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

from cupola.cpu.compiler.errors import ImageError
from cupola.cpu.compiler.numerics import numerics

from . import later
from .cache import ObjectCache
from .processor import X86, instructions_of, processor

MEDIUM = 2200
"""Lines of LLVM IR up to which optimization level 2 is affordable."""

LARGE = 12_000
"""Lines of LLVM IR up to which passes are affordable whose time grows faster than the code does."""

HUGE = 25_000
"""Lines of LLVM IR up to which that is so for those that make machine code, with registers in memory."""

quick = os.environ.get("CUPOLA_CPU_OPTIMIZE") == "0"
"""Whether machine code is made in the simplest way, as for the largest kernels: in a third of the time, and slow."""

_lock = threading.Lock()


class MachineCode:
    """Code in memory; it stays as long as this object does.

    Attributes
    ----------
    address
        Of its function.
    key
        Of its entry in the cache of object code.
    helpers
        The helpers that it calls.
    """

    def __init__(self, engine: Any, address: int, key: str, helpers: tuple[str, ...]) -> None:
        self._engine = engine
        self.address = address
        self.key = key
        self.helpers = helpers


_MISSING = (
    'the CPU device compiles kernels with llvmlite, which is not installed: pip install "cupola[cpu]", or pip install '
    "llvmlite"
)


def require_compiler() -> None:
    """Raise an `ImageError` when llvmlite is not installed, without importing it."""
    if sys.modules.get("llvmlite") is None and importlib.util.find_spec("llvmlite") is None:
        raise ImageError("CUDA_ERROR_JIT_COMPILER_NOT_FOUND", _MISSING)


def llvm() -> ModuleType:
    """llvmlite's binding of LLVM, ready for this computer."""
    try:
        import llvmlite.binding as binding
    except ImportError as error:
        raise ImageError("CUDA_ERROR_JIT_COMPILER_NOT_FOUND", f"{_MISSING} ({error})") from error
    return _prepared(binding)


@functools.cache
def _prepared(binding: ModuleType) -> ModuleType:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding


@functools.cache
def _runtime() -> ctypes.CDLL:
    """The native runtime, whose helpers machine code calls."""
    spec = importlib.util.find_spec("cupola.cpu._driver")
    if spec is None or spec.origin is None:
        raise ImageError("CUDA_ERROR_NOT_SUPPORTED", "this build of cupola has no CPU device (cupola.cpu._driver)")
    return ctypes.PyDLL(spec.origin)


@functools.cache
def _link_helper(name: str, symbol: str) -> None:
    """Tell LLVM where a helper is that machine code calls by the name ``symbol``."""
    address = ctypes.cast(getattr(_runtime(), name), ctypes.c_void_p).value
    llvm().add_symbol(symbol, address)


def link_half_conversions() -> None:
    """Tell LLVM what to call for conversions of half precision on x86-64 without F16C; other processors have them."""
    if platform.machine() in X86:
        _link_helper("cupola_half_to_float", "__extendhfsf2")
        _link_helper("cupola_float_to_half", "__truncsfhf2")


def helpers_of(ir: str) -> tuple[str, ...]:
    """The helpers that an LLVM module calls."""
    found = []
    for line in ir.splitlines():
        if line.startswith("declare") and "@cupola_" in line:
            found.append(line.partition("@")[2].partition("(")[0])
    return tuple(found)


def _link(helpers: tuple[str, ...]) -> None:
    link_half_conversions()
    for name in helpers:
        _link_helper(name, name)


def _instructions() -> frozenset[str]:
    """The extensions of the instruction set that the processor has."""
    return processor(llvm()).instructions


def runs(level: str) -> bool:
    """Whether machine code for a level of x86-64 can be run."""
    return platform.machine() in X86 and instructions_of(level) <= _instructions()


def gathers() -> bool:
    """Whether the processor has instructions that load a vector from scattered places."""
    return not _instructions().isdisjoint(("avx2", "avx512f"))


def permutes_words() -> bool:
    """Whether the processor has instructions that choose 16-bit numbers out of vectors of 64 bytes."""
    return "avx512bw" in _instructions()


def scatters() -> bool:
    """Whether the processor has instructions that store a vector to scattered places."""
    return "avx512f" in _instructions()


def stores_by_mask(element_bytes: int) -> bool:
    """Whether the processor has instructions that store some elements, of this size, of a vector."""
    return {1: "avx512bw", 2: "avx512bw", 4: "avx2", 8: "avx2"}.get(element_bytes) in _instructions()


def _target_machine(effort: int = 2) -> Any:
    chosen = processor(llvm())
    target = llvm().Target.from_default_triple()
    return target.create_target_machine(cpu=chosen.name, features=chosen.features, opt=effort, jit=True)


def _cache() -> ObjectCache:
    return _cache_of(quick, numerics())


@functools.cache
def _cache_of(quick: bool, numerics: str) -> ObjectCache:
    binding = llvm()
    chosen = processor(binding)
    versions = ".".join(map(str, binding.llvm_version_info))
    effort = " quick" if quick else ""
    made_for = f"{chosen.name} {chosen.features} {versions} {binding.get_process_triple()}{effort} {numerics}"
    return ObjectCache.default(made_for)


def compile_ir(ir: str, name: str, use: Callable[[MachineCode], object] | None = None) -> MachineCode:
    """The machine code of the function ``name`` of an LLVM module.

    With `use`, that may be code made in the simplest way. Then `use` gets the usual one later, in another thread.
    """
    cache = _cache()
    key, helpers = cache.key(ir), helpers_of(ir)

    def take() -> bool:
        code = recall_code(key, name, helpers)
        if code is not None and use is not None:
            use(code)
        return code is not None

    def make() -> None:
        if use is not None:
            use(compile_ir(ir, name))

    with _lock:
        loaded = _recall(key, name, helpers)
        if loaded is not None:
            return loaded
        if use is not None and not quick and later.ask(("ir", ir), take, make):
            code = emit_object(ir, simply=True)
        else:
            code = emit_object(ir)
            cache.put(key, code)
        loaded = _load(code, name, key, helpers)
        if loaded is None:
            raise ImageError("CUDA_ERROR_UNKNOWN", f"the machine code of kernel '{name}' could not be loaded")
        return loaded


def keep(ir: str) -> None:
    """Put the machine code of an LLVM module into the cache, if it is not there."""
    key = _cache().key(ir)
    if _cache().get(key) is None:
        _cache().put(key, emit_object(ir))


def replace(slots: ctypes.Array[ctypes.c_uint64], place: int, code: MachineCode) -> None:
    """Have the engine run other code: the address goes to a place of `cpu_variant.better` (engine/running.h)."""
    _runtime().cpu_code_replace(ctypes.byref(slots, 8 * place), ctypes.c_uint64(code.address))


def cache_key(*what: object) -> str:
    """A name for what belongs to this computer's machine code."""
    return _cache().key(repr(what))


def recall_code(key: str, name: str, helpers: tuple[str, ...]) -> MachineCode | None:
    """Machine code that was compiled before, or None when it is not there any more."""
    with _lock:
        return _recall(key, name, helpers)


def _recall(key: str, name: str, helpers: tuple[str, ...]) -> MachineCode | None:
    _link(helpers)
    code = _cache().get(key)
    return None if code is None else _load(code, name, key, helpers)


def parsed(ir: str, machine: Any = None) -> Any:
    """The LLVM module of a text, for this process, unless another target machine of LLVM is given."""
    binding = llvm()
    module = binding.parse_assembly(ir)
    module.triple = machine.triple if machine else binding.get_process_triple()
    module.data_layout = str((machine or _target_machine()).target_data)
    return module


def optimise(module: Any, lines: int, machine: Any = None, *, simply: bool = False) -> None:
    """Run the passes over a module, by the effort that its size allows (see above), or the least."""
    level = 0 if simply or quick or lines > LARGE else 2 if lines <= MEDIUM else 1
    builder, inline, passes = _passes(machine, level) if machine else _passes_here(level)
    inline.run(module, builder)
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, builder)


def _passes(machine: Any, level: int) -> tuple[Any, Any, Any]:
    """What runs passes: a builder, those over a module, and those over a function."""
    binding = llvm()
    options = binding.create_pipeline_tuning_options(speed_level=max(level, 1))
    options.loop_vectorization = options.slp_vectorization = False
    options.loop_interleaving = options.loop_unrolling = False
    builder = binding.create_pass_builder(machine, options)
    inline = binding.create_new_module_pass_manager()
    inline.add_always_inliner_pass()
    if level:
        return builder, inline, builder.getFunctionPassManager()
    passes = binding.create_new_function_pass_manager()
    passes.add_dead_code_elimination_pass()
    return builder, inline, passes


@functools.cache
def _passes_here(level: int) -> tuple[Any, Any, Any]:
    """Those for this computer's processor, made once: llvmlite never frees what it has made of passes."""
    return _passes(_target_machine(), level)


def optimised(ir: str, machine: Any = None) -> Any:
    """The LLVM module of a text after optimization."""
    module = parsed(ir, machine)
    optimise(module, ir.count("\n"), machine)
    return module


def object_code(module: Any, lines: int, *, simply: bool = False) -> bytes:
    """The machine code of an optimized module."""
    effort = 0 if simply or quick or lines > HUGE else 2 if lines <= LARGE else 1
    return bytes(_target_machine(effort).emit_object(module))


def emit_object(ir: str, *, simply: bool = False) -> bytes:
    """The object code of an LLVM module, not taken from the cache."""
    module, lines = parsed(ir), ir.count("\n")
    optimise(module, lines, simply=simply)
    return object_code(module, lines, simply=simply)


def load_object(code: bytes, name: str, helpers: tuple[str, ...]) -> MachineCode | None:
    """Put object code that is not in the cache into memory; None when it is not what it should be."""
    with _lock:
        _link(helpers)
        return _load(code, name, "", helpers)


def _load(code: bytes, name: str, key: str, helpers: tuple[str, ...]) -> MachineCode | None:
    """Put object code into memory; None when it is not what it should be."""
    if not code.startswith(b"\x7fELF"):
        return None  # LLVM would end the process
    binding = llvm()
    empty = binding.parse_assembly("")
    engine = binding.create_mcjit_compiler(empty, _target_machine())
    try:
        engine.add_object_file(binding.ObjectFileRef.from_data(code))
    except RuntimeError:
        return None
    engine.finalize_object()
    address = engine.get_function_address(name)
    return MachineCode(engine, address, key, helpers) if address else None
