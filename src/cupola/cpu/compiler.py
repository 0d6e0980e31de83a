"""Images to kernels that run: what the driver calls when it loads a module and when it launches a kernel.

`load_image` parses a module and checks that every instruction can be run. A kernel is compiled when it is first
launched, for the shape of that launch's blocks (codegen/shape.py); later launches with blocks of the same shape use
the same code.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from cupola.cpu import passes, ptx
from cupola.cpu.codegen import emit
from cupola.cpu.codegen.body import Facts, Site
from cupola.cpu.codegen.layout import Layout, code_address, module_variables
from cupola.cpu.codegen.machine import MachineCode, compile_ir
from cupola.cpu.codegen.meetings import meets_warp, suspends
from cupola.cpu.codegen.shape import Shape, choose_shape
from cupola.cpu.errors import ImageError
from cupola.cpu.images import open_image
from cupola.cpu.ptx import ast
from cupola.cpu.ptx.errors import describe

BINARY_VERSION = 90
"""What CU_FUNC_ATTRIBUTE_BINARY_VERSION says of code that comes as PTX: the modelled device's."""

_ASSUMED_REGISTERS = 32
"""Registers a thread takes, when there is no cubin to say."""


@dataclass(frozen=True, slots=True)
class KernelInfo:
    """What the driver tells about a kernel. ``params`` are (name, offset, size, alignment), sizes are in bytes."""

    name: str
    params: tuple[tuple[str, int, int, int], ...]
    param_bytes: int
    static_shared: int
    local_bytes: int
    const_bytes: int
    registers: int
    max_threads: int
    required_block: tuple[int, int, int] | None
    max_block: tuple[int, int, int] | None
    required_cluster: tuple[int, int, int] | None
    max_cluster: int
    must_have_cluster: bool
    blocks_are_clusters: bool
    ptx_version: int
    binary_version: int


@dataclass(frozen=True, slots=True)
class VariableInfo:
    """A variable that the driver allocates when it loads the module.

    ``space`` is ``"global"`` or ``"const"``; ``init`` the initial bytes (the rest, or all when None, is zero);
    ``relocations`` are (offset, bytes, symbol, addend, generic): the symbol's address plus the addend goes there.
    """

    name: str
    space: str
    size: int
    align: int
    init: bytes | None
    relocations: tuple[tuple[int, int, str, int, bool], ...]
    managed: bool


@dataclass(slots=True)
class Kernel:
    """A kernel of a loaded module: its code ready for the emitter, and its compiled variants."""

    function: ast.Function
    layout: Layout
    info: KernelInfo
    whole_warps: bool
    variants: dict[Shape, Variant]

    def facts(self, shape: Shape) -> Facts:
        """What the emitter wants to know about the kernel, for blocks of a shape."""
        analysis = passes.analyse(
            self.function,
            width=shape.width,
            x_is_contiguous=shape.contiguous,
            rows_are_whole=shape.contiguous and shape.full,
            suspends=suspends,
        )
        return Facts(self.info.name, analysis, self.layout, shape)


class Variant:
    """Machine code of a kernel for blocks of one shape.

    Attributes
    ----------
    address
        Of the body.
    width
        Threads that one call of it runs.
    frame_bytes, site_count
        What the runtime must provide for a call.
    sites
        The places that may fault, those of the independent body behind those of the convergent one.
    resume_sites
        The site of each barrier behind which the convergent body resumes.
    has_stack, stack_bytes, stack_grows
        Whether threads have a stack, what the frames of called functions take there, and whether that may not be all.
    """

    def __init__(self, kernel: Kernel, shape: Shape) -> None:
        self.kernel = kernel
        self.shape = shape
        code = emit.emit_body(kernel.facts(shape))
        self._code = compile_ir(code.ir, kernel.info.name)
        self._independent: MachineCode | None = None
        self._lock = threading.Lock()
        self.sites: list[Site] = code.sites
        self.address = self._code.address
        self.width = shape.width
        self.frame_bytes = code.frame_bytes
        self.resume_sites = code.resume_sites
        self.has_stack = kernel.layout.has_stack
        self.stack_bytes = kernel.function.stack_bytes
        self.stack_grows = kernel.function.stack_grows
        self.site_count = 2 * len(code.sites) + 64  # the independent body has about as many

    def independent_address(self) -> int:
        """The address of the independent body (runtime/abi.h), compiled when a unit first needs it.

        Any thread may ask at any time, and goes on to run that code: it must stay the same.
        """
        with self._lock:
            if self._independent is None:
                code = emit.emit_body(self.kernel.facts(self.shape), independent=True, first_site=len(self.sites))
                self.sites += code.sites
                if len(self.sites) > self.site_count or code.frame_bytes != self.frame_bytes:
                    raise AssertionError("the two bodies of a kernel do not fit together")
                self._independent = compile_ir(code.ir, self.kernel.info.name)
            return self._independent.address


class LoadedModule:
    """A module whose kernels can be compiled.

    Attributes
    ----------
    kernels : list of KernelInfo
    variables : list of VariableInfo
        In the order in which the runtime wants their addresses.
    """

    def __init__(self, module: ast.Module, registers: dict[str, int]) -> None:
        self.module = module
        self._lock = threading.Lock()
        self._kernels = [
            self._prepare(function, registers)
            for function in module.functions.values()
            if function.is_entry and function.body is not None
        ]
        self.kernels = [kernel.info for kernel in self._kernels]
        self.variables = [
            VariableInfo(v.name, v.space, v.size, v.align, *_with_functions(module, v), v.managed)
            for v in module_variables(module)
        ]

    def _prepare(self, function: ast.Function, registers: dict[str, int]) -> Kernel:
        prepared = passes.prepare(self.module, function)
        instructions = [s for s in prepared.body or () if isinstance(s, ast.Instruction)]
        for instruction in instructions:
            problem = emit.problem_with(instruction)
            if problem is not None:
                name = ".".join((instruction.opcode, *instruction.modifiers))
                raise ImageError(
                    "CUDA_ERROR_INVALID_PTX",
                    f"unsupported PTX instruction '{name}' in kernel '{function.name}' at "
                    f"{describe(instruction.location)}: {problem}",
                )
        layout = Layout.of(self.module, prepared)
        info = self._describe(function, layout, registers)
        whole_warps = any(meets_warp(i) or i.opcode == "activemask" for i in instructions)
        return Kernel(prepared, layout, info, whole_warps, {})

    def _describe(self, function: ast.Function, layout: Layout, registers: dict[str, int]) -> KernelInfo:
        major, minor = self.module.version
        directives = function.directives
        required = directives.get("reqntid")
        limit = required or directives.get("maxntid")
        return KernelInfo(
            name=function.name,
            params=tuple((p.name, p.offset, p.size, p.align) for p in function.parameters),
            param_bytes=layout.param_bytes,
            static_shared=layout.static_shared,
            local_bytes=layout.local_bytes,
            const_bytes=sum(v.size for v in self.module.variables.values() if v.space == "const"),
            registers=registers.get(function.name, _ASSUMED_REGISTERS),
            max_threads=min(1024, _product(limit)) if limit else 1024,
            required_block=_dim3(required),
            max_block=_dim3(limit),
            required_cluster=_dim3(directives.get("reqnctapercluster")),
            max_cluster=_product(directives.get("maxclusterrank", (0,))),
            must_have_cluster="explicitcluster" in directives and "reqnctapercluster" not in directives,
            blocks_are_clusters="blocksareclusters" in directives,
            ptx_version=10 * major + minor,
            binary_version=BINARY_VERSION,
        )

    def facts(self, index: int, block: tuple[int, int, int]) -> Facts:
        """What the emitter wants to know about a kernel, for blocks of threads of the given size."""
        kernel = self._kernels[index]
        return kernel.facts(choose_shape(block, whole_warps=kernel.whole_warps))

    def compile(self, index: int, block: tuple[int, int, int]) -> Variant:
        """The machine code of a kernel for blocks of threads of the given size.

        Raises
        ------
        ImageError
            When llvmlite is not installed, or the kernel cannot be compiled.
        """
        kernel = self._kernels[index]
        shape = choose_shape(block, whole_warps=kernel.whole_warps)
        with self._lock:
            if shape not in kernel.variants:
                kernel.variants[shape] = Variant(kernel, shape)
            return kernel.variants[shape]


def _with_functions(
    module: ast.Module, variable: ast.Variable
) -> tuple[bytes | None, tuple[tuple[int, int, str, int, bool], ...]]:
    """Initial bytes with the addresses of functions in place (tables of virtual functions), and other relocations."""
    numbers = {name: number for number, name in enumerate(module.functions)}
    if not any(symbol in numbers for _, _, symbol, _, _ in variable.relocations):
        return variable.initializer, variable.relocations
    data, others = bytearray(variable.initializer or b""), []
    for relocation in variable.relocations:
        offset, width, symbol, addend, _ = relocation
        if symbol in numbers and symbol not in module.variables:
            data += bytes(max(0, offset + width - len(data)))
            address = code_address(numbers[symbol]) + addend & (1 << 8 * width) - 1
            data[offset : offset + width] = address.to_bytes(width, "little")
        else:
            others.append(relocation)
    return bytes(data), tuple(others)


def _dim3(numbers: tuple[int, ...] | None) -> tuple[int, int, int] | None:
    if numbers is None:
        return None
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


def _product(numbers: tuple[int, ...]) -> int:
    result = 1
    for number in numbers:
        result *= number
    return result


def load_image(image: bytes) -> LoadedModule:
    """Load a module from PTX text, or from a cubin with its PTX behind it.

    Raises
    ------
    ImageError
        When the image holds no PTX, the PTX has an error, or the CPU device cannot run one of its instructions.
        Its ``status`` names the CUDA error.
    """
    opened = open_image(bytes(image))
    try:
        module = ptx.parse(opened.ptx)
        return LoadedModule(module, opened.registers)
    except ptx.PtxError as error:
        raise ImageError("CUDA_ERROR_INVALID_PTX", str(error)) from error
