"""Images to kernels that run: what the driver calls when it loads a module and when it launches a kernel.

A kernel is compiled when it is first launched, for the shape of that launch's blocks (emit/threads/shape.py); later
launches with blocks of the same shape use the same code. What was done before, also by another process, is not done
again: see `recall`. Then the modules that read PTX and write LLVM IR are not even imported.
"""

from __future__ import annotations

import ctypes
import os
import re
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING, Any, overload

from cupola.cpu.compiler import collector
from cupola.cpu.compiler.emit.instruments import OF_ANY_WIDTH, names_of
from cupola.cpu.compiler.emit.threads.shape import Shape, choose_shape
from cupola.cpu.compiler.errors import ImageError
from cupola.cpu.compiler.facts import FOR_DEBUGGER, OWN, QUICK_FIRST, KernelInfo, VariableInfo, counts_lines
from cupola.cpu.compiler.images import versions
from cupola.cpu.compiler.images.containers import is_cubin, open_image
from cupola.cpu.compiler.objects import later, machine, packaged, recall
from cupola.cpu.compiler.records import dataclass

if TYPE_CHECKING:
    from cupola.cpu.compiler.emit.bodies import Code
    from cupola.cpu.compiler.emit.control.body import Facts, Site
    from cupola.cpu.compiler.frontend import Kernel, ParsedModule
    from cupola.cpu.compiler.ptx import ast


_BodyFacts = tuple[int, int, tuple[int, ...], bool, bool, bool, int, tuple[int, ...], tuple[str, ...]]
_Dim3 = tuple[int, int, int]

_instrumented: list[Variant] = []
"""Code with instruments that has run, which is kept with what it has counted."""
_loaded: list[LoadedModule] | None = None
_debugged: weakref.WeakSet[Variant] = weakref.WeakSet()
_tell_debugged: Callable[[Variant], object] | None = None
_instrumented_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Configuration:
    """What launches have in common whose counts are added up."""

    grid: _Dim3
    block: _Dim3
    cluster: _Dim3
    dynamic_shared: int


@dataclass(slots=True)
class Counts:
    """How often kernels were launched in one configuration, and the sums of their counters, 64 bits each."""

    launches: int
    counters: bytearray


class Variant:
    """Machine code of a kernel for blocks of one shape.

    Attributes
    ----------
    info
        The kernel.
    address
        Of the body.
    width
        Threads that one call of it runs.
    frame_bytes, site_count
        What the runtime must provide for a call.
    resume_sites
        The site of each barrier behind which the convergent body resumes.
    whole_blocks, rows_of_blocks
        One call of the body runs all units of a block, or of several blocks that are neighbors in x.
    apart
        It does not matter in which order blocks begin.
    instruments
        The names of the instruments in the code (emit/instruments), in their order.
    counter_count
        Counters that they need.
    counts
        What they have counted.
    stops
        For a debugger: a byte for each instruction, not 0 where threads are to stop. The engine reads it in place.
    pointers
        With checks, what `passes.pointers` knows of the accesses, for the engine.
    """

    def __init__(self, module: LoadedModule, index: int, shape: Shape, instruments: tuple[str, ...] = ()) -> None:
        self._module = module
        self._index = index
        self._shape = shape
        self.instruments = instruments
        self.counts: dict[Configuration, Counts] = {}
        self._lock = threading.Lock()
        self._sites: list[Site] | None = None
        self._independent: machine.MachineCode | None = None
        # With what replaces the body and the independent body: the engine reads their addresses in place.
        self._better: tuple[ctypes.Array[ctypes.c_uint64], list[machine.MachineCode]] | None = None
        if module.quick_first and not instruments:
            self._better = (ctypes.c_uint64 * 2)(), []
        self.info = module.kernels[index]
        self._only_independent = "debug" in instruments
        self._code, facts = self._make_body(independent=self._only_independent)
        (
            self.frame_bytes,
            self._own_sites,
            self.resume_sites,
            self.whole_blocks,
            self.rows_of_blocks,
            self.apart,
            self.counter_count,
            self.pointers,
            self._observing,
        ) = facts
        self.address = self._code.address
        self.width = shape.width
        self.site_count = 2 * self._own_sites + 64  # the independent body has about as many
        self.stops = bytearray(self._instruction_count()) if self._only_independent else None
        if self._only_independent:
            with _instrumented_lock:
                _debugged.add(self)
                tell = _tell_debugged
            if tell is not None:
                tell(self)

    def _write(self, *, independent: bool) -> Code:
        from cupola.cpu.compiler.emit import bodies
        from cupola.cpu.compiler.ptx import PtxError

        try:
            with collector.paused():
                facts = self.facts()
                if independent:
                    first = 0 if self._only_independent else self._own_sites
                    return bodies.emit_body(facts, independent=True, first_site=first, instruments=self.instruments)
                return bodies.emit_body(facts, instruments=self.instruments)
        except PtxError as error:
            raise ImageError("CUDA_ERROR_INVALID_PTX", str(error)) from error

    def _make_body(self, *, independent: bool) -> tuple[machine.MachineCode, _BodyFacts]:
        """Machine code with the bytes of its frame, the number of its sites, and the sites where it resumes."""
        shape = self._shape
        name = self._module.identity, self._index, astuple(shape), independent, self.instruments
        key = machine.cache_key("body", *name)
        ready = _recalled(key, self.info.name)
        if ready is None and self._better:
            ready = self._take_packaged(key, independent)
        if ready is not None:
            return ready
        body = self._write(independent=independent)
        code = machine.compile_ir(body.ir, self.info.name, self._use(independent) if self._better else None)
        facts = (
            body.frame_bytes,
            len(body.sites),
            body.resume_sites,
            body.whole_blocks,
            body.rows_of_blocks,
            body.apart,
            body.counter_count,
            body.pointers,
            body.instruments,
        )
        recall.remember((code.key, code.helpers, facts), key)
        return code, facts

    def _take_packaged(self, key: str, independent: bool) -> tuple[machine.MachineCode, _BodyFacts] | None:
        """A body that came with the package, if there is one; better code for this computer is asked for."""
        module, shape, name = self._module, astuple(self._shape), self.info.name
        found = packaged.find("body", module.content, self._index, shape, independent)
        code = machine.load_object(found[0], name, found[1]) if found is not None else None
        if code is None:
            return None
        facts, use = found[2], self._use(independent)

        def take() -> bool:
            better = _recalled(key, name)
            if better is not None and better[1] == facts:  # else for the next process: the engine goes by these facts
                use(better[0])
            return True  # without better code, the program goes on as it is

        later.ask(("body", *module.source, self._index, shape, independent), take, lambda: None)
        return code, facts

    def _use(self, independent: bool) -> Callable[[machine.MachineCode], object]:
        """A function that replaces a body, if the kernel is still there."""
        this = weakref.ref(self)

        def use(code: machine.MachineCode) -> None:
            variant = this()
            if variant is not None and variant._better is not None:
                slots, codes = variant._better
                codes.append(code)
                machine.replace(slots, int(independent), code)

        return use

    @property
    def better(self) -> int:
        """The address of the addresses of code that replaces the two bodies; 0: none will."""
        return ctypes.addressof(self._better[0]) if self._better else 0

    def clear_stops(self) -> None:
        """Stop nowhere."""
        if self.stops is not None:
            self.stops[:] = bytes(len(self.stops))

    def _instruction_count(self) -> int:
        from cupola.cpu.compiler.emit.instruments.instrument import instructions_of

        return len(instructions_of(self.facts()))

    @property
    def checks(self) -> int:
        """The checks in the code, as the engine numbers them (``enum cpu_check``)."""
        return sum(1 << place for place, name in enumerate(("race", "init", "sync")) if name in self._observing)

    @property
    def module(self) -> LoadedModule:
        """Where the kernel is from."""
        return self._module

    def facts(self) -> Facts:
        """What the emitter knew about the kernel."""
        return self._module.kernel(self._index).facts(self._shape, rolled=not self.instruments)

    def totals(self, grid: _Dim3, block: _Dim3, cluster: _Dim3, dynamic_shared: int) -> bytearray:
        """Count a launch that is over; returns what the engine adds its counters to."""
        configuration = Configuration(grid, block, cluster, dynamic_shared)
        with _instrumented_lock:
            counts = self.counts.get(configuration)
            if counts is None:
                if not self.counts:
                    _instrumented.append(self)
                counts = self.counts[configuration] = Counts(0, bytearray(8 * self.counter_count))
            counts.launches += 1
            return counts.counters

    @property
    def has_stack(self) -> bool:
        """Whether threads have a stack; for this and the next two see `KernelInfo`."""
        return self.info.has_stack

    @property
    def stack_bytes(self) -> int:
        return self.info.stack_bytes

    @property
    def stack_grows(self) -> bool:
        return self.info.stack_grows

    @property
    def sites(self) -> list[Site]:
        """The places that may fault, those of the independent body behind those of the convergent one."""
        if self._sites is None:
            sites = [] if self._only_independent else self._write(independent=False).sites
            self._sites = [*sites, *self._write(independent=True).sites]
        return self._sites

    @property
    def call_sites(self) -> tuple[ast.Instruction, ...]:
        """The calls in the kernel of functions that are not inlined, by their numbers from 1 on."""
        return self._module.kernel(self._index).function.call_sites

    def independent_address(self) -> int:
        """The address of the independent body (engine/abi.h), compiled when a unit first needs it.

        Any thread may ask at any time, and goes on to run that code: it must stay the same.
        """
        if self._only_independent:
            return self.address
        with self._lock:
            if self._independent is None:
                code, (frame_bytes, sites, *_) = self._make_body(independent=True)
                if self._own_sites + sites > self.site_count or frame_bytes != self.frame_bytes:
                    raise AssertionError("the two bodies of a kernel do not fit together")
                self._independent = code
            return self._independent.address


def _facts_of_body(known: Any) -> tuple[str, tuple[str, ...], _BodyFacts]:
    object_key, helpers, facts = known
    if not isinstance(object_key, str) or not all(isinstance(name, str) for name in helpers):
        raise TypeError("these are no facts of a body")
    return object_key, helpers, facts


def _facts_of_module(known: Any) -> tuple[list[tuple[str, int]], list[VariableInfo], list[KernelInfo]]:
    entries, variables, kernels = known
    return (
        [(name, address) for name, address in entries],
        [VariableInfo(*fields) for fields in variables],
        [KernelInfo(*fields) for fields in kernels],
    )


def _recalled(key: str, name: str) -> tuple[machine.MachineCode, _BodyFacts] | None:
    """A body that was made before, also by another process."""
    known = recall.recall(_facts_of_body, key)
    if known is None:
        return None
    object_key, helpers, facts = known
    code = machine.recall_code(object_key, name, helpers)
    return None if code is None else (code, facts)


class LoadedModule:
    """A module whose kernels can be compiled.

    Attributes
    ----------
    content, identity : str
        Name the image among all others, and what this state of the package finds out about it.
    entries : list of (str, int)
        The names of the kernels, and their addresses (`KernelInfo.code`).
    quick_first : bool
        Whether kernels may run code made in the simplest way until better code is there.
    is_lazy : bool
        Whether the module is large, and its kernels are read one by one.
    kernels : sequence of KernelInfo
        Of a large module, each is found out when it is first asked for, as by a GPU's driver: only then is the kernel's
        PTX read, and only then does an error in it come up.
    variables : list of VariableInfo
        In the order in which the runtime wants their addresses.
    """

    def __init__(self, text: str, registers: dict[str, int], architecture: int, *, quick_first: bool = False) -> None:
        self._text = text
        self.quick_first = quick_first
        self._registers = registers
        self._architecture = architecture
        self._lock = threading.RLock()
        self._parsed: ParsedModule | None = None
        self._variants: dict[tuple[int, Shape, int], Variant] = {}
        self.is_lazy = _is_large(text)
        self.content = recall.content_of(text, registers, architecture)
        self.identity = recall.identify(self.content)
        self.kernels: Sequence[KernelInfo] = _Infos(self)
        name = "lazy module" if self.is_lazy else "module"
        known = recall.recall(_facts_of_module, name, self.identity)
        if known is None and quick_first and (found := packaged.find(name, self.content)) is not None:
            known = _facts_of_module(found)
        if known is not None:
            self.entries, self.variables, kernels = known
        else:
            parsed = self.parsed()
            self.entries, self.variables = parsed.entries, parsed.variables
            kernels = [] if self.is_lazy else [kernel.info for kernel in map(parsed.kernel, self._indices())]
            recall.remember(
                (self.entries, list(map(_fields, self.variables)), list(map(_fields, kernels))), name, self.identity
            )
        if not self.is_lazy:
            self.kernels = kernels

    def _indices(self) -> range:
        return range(len(self.entries))

    @property
    def text(self) -> str:
        """Its PTX."""
        return self._text

    @property
    def source(self) -> tuple[str, tuple[tuple[str, int], ...], int]:
        """All that it is made of: the PTX, registers and architecture."""
        return self._text, tuple(self._registers.items()), self._architecture

    def parsed(self) -> ParsedModule:
        """The module with its PTX read."""
        with self._lock:
            if self._parsed is None:
                from cupola.cpu.compiler.frontend import ParsedModule

                with collector.paused():
                    self._parsed = ParsedModule(self._text, self._registers, self._architecture, lazily=self.is_lazy)
            return self._parsed

    def kernel(self, index: int) -> Kernel:
        """A kernel ready for the emitter."""
        with collector.paused():
            return self.parsed().kernel(index)

    def info(self, index: int) -> KernelInfo:
        """What the driver wants to know about a kernel, for modules that do not know that of all of them."""
        known = recall.recall(lambda fields: KernelInfo(*fields), "kernel", self.identity, index)
        if known is not None:
            return known
        info = self.kernel(index).info
        recall.remember(_fields(info), "kernel", self.identity, index)
        return info

    def facts(self, index: int, block: tuple[int, int, int]) -> Facts:
        """What the emitter wants to know about a kernel, for blocks of threads of the given size."""
        kernel = self.kernel(index)
        return kernel.facts(_shape(kernel.info, block))

    def compile(self, index: int, block: tuple[int, int, int], instruments: int = 0) -> Variant:
        """The machine code of a kernel for blocks of threads of the given size, with a set of instruments.

        Raises
        ------
        ImageError
            When llvmlite is not installed, or the kernel cannot be compiled.
        """
        shape = _shape(self.kernels[index], block, whole_warps=not OF_ANY_WIDTH.issuperset(names_of(instruments)))
        with self._lock:
            variant = self._variants.get((index, shape, instruments))
            if variant is None:
                variant = Variant(self, index, shape, names_of(instruments))
                self._variants[index, shape, instruments] = variant
            return variant


def keep(
    text: str,
    registers: Sequence[tuple[str, int]],
    architecture: int,
    index: int,
    shape: Sequence[Any],
    independent: bool,
) -> None:
    """Put what becomes of a kernel into the cache: its body and, with `independent`, the independent body."""
    variant = Variant(LoadedModule(text, dict(registers), architecture), index, Shape(*shape))
    if independent:
        variant.independent_address()


def tell_debugged(function: Callable[[Variant], object] | None) -> None:
    """Call a function with all code for a debugger, there already or compiled from here on; None: not any more."""
    global _tell_debugged
    with _instrumented_lock:
        _tell_debugged = function
        known = list(_debugged) if function is not None else []
    for variant in known:
        assert function is not None
        function(variant)


def keep_loaded() -> None:
    """Note all modules that are loaded from here on, for `take_loaded`."""
    global _loaded
    with _instrumented_lock:
        _loaded = [] if _loaded is None else _loaded


def take_loaded() -> list[LoadedModule]:
    """The modules that were loaded since this or `keep_loaded` was last called."""
    global _loaded
    with _instrumented_lock:
        taken, _loaded = _loaded or [], None if _loaded is None else []
    return taken


def take_counts() -> list[tuple[Variant, dict[Configuration, Counts]]]:
    """What instruments have counted in all launches that are over, since this was last called."""
    with _instrumented_lock:
        taken = [(variant, variant.counts) for variant in _instrumented]
        for variant, _ in taken:
            variant.counts = {}
        _instrumented.clear()
    return taken


class _Infos(Sequence[KernelInfo]):
    """Of the kernels of a large module."""

    def __init__(self, module: LoadedModule) -> None:
        self._module = module
        self._known: dict[int, KernelInfo] = {}

    def __len__(self) -> int:
        return len(self._module.entries)

    @overload
    def __getitem__(self, index: int) -> KernelInfo: ...
    @overload
    def __getitem__(self, index: slice) -> list[KernelInfo]: ...
    def __getitem__(self, index: int | slice) -> KernelInfo | list[KernelInfo]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        index = range(len(self))[index]
        info = self._known.get(index)
        if info is None:
            info = self._known[index] = self._module.info(index)
        return info


LARGE_CHARACTERS = 100_000
"""PTX from which on a module is read kernel by kernel."""

_DEVICE_RUNTIME = re.compile(r"\.func\b[^;{]*?\b_*cuda[A-Z]\w*\s*\(")


def _is_large(text: str) -> bool:
    """Whether to read kernels one by one: not those that launch others, which may be any of them."""
    return (
        len(text) >= LARGE_CHARACTERS
        and os.environ.get("CUDA_MODULE_LOADING", "").upper() != "EAGER"
        and not _DEVICE_RUNTIME.search(text)
    )


def _shape(kernel: KernelInfo, block: tuple[int, int, int], *, whole_warps: bool = False) -> Shape:
    return choose_shape(
        block,
        whole_warps=whole_warps or kernel.whole_warps,
        walkers=kernel.walkers,
        largest_compared=kernel.largest_compared,
    )


def _fields(record: KernelInfo | VariableInfo) -> tuple[Any, ...]:
    return tuple(getattr(record, name) for name in record.__slots__)


def load_image(image: bytes, architecture: int = 0, driver: int = 0) -> LoadedModule:
    """Load a module from PTX text, or from a cubin with its PTX behind it.

    Parameters
    ----------
    image
        The text, or the cubin.
    architecture
        The number of the modeled GPU, 90 for sm_90, which a cubin must be for; 0 to load any.
    driver
        The CUDA version of the modelled driver (13050 for 13.5), which refuses newer PTX, but not cubins that were made
        of it; 0 to load any.

    Raises
    ------
    ImageError
        When the image holds no PTX or is a cubin for another GPU, the PTX has an error, the CPU device cannot run one
        of its instructions, or what compiles kernels is not installed. Its ``status`` names the CUDA error.
    """
    image = bytes(image)
    opened = open_image(image, architecture)
    machine.require_compiler()
    whole = opened.ptx.removesuffix(QUICK_FIRST)
    quick_first = len(whole) < len(opened.ptx)
    text = whole.removesuffix(OWN)
    if driver and len(text) == len(whole) and not is_cubin(image):
        versions.check(text, driver)
    if os.environ.get("CUPOLA_DEBUGGER"):
        text += FOR_DEBUGGER
    # Without optimization kernels take more registers than they would, and might not be launched.
    registers = {} if counts_lines(text) or text.endswith(FOR_DEBUGGER) else opened.registers
    module = LoadedModule(text, registers, opened.architecture, quick_first=quick_first)
    if _loaded is not None:
        with _instrumented_lock:
            _loaded.append(module)
    return module
