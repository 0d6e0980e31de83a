"""PTX text to kernels ready for the emitter, and to what the driver wants to know about them.

Every instruction that the CPU device cannot run is found here: when the module is loaded or, in a large module, when a
kernel is first asked for.
"""

from __future__ import annotations

import re
import threading
import zlib

from cupola.cpu.compiler import passes, ptx
from cupola.cpu.compiler.emit import bodies
from cupola.cpu.compiler.emit.control.body import Facts
from cupola.cpu.compiler.emit.threads.layout import (
    Layout,
    code_address,
    module_places,
    module_variables,
    specials,
    symbols,
)
from cupola.cpu.compiler.emit.threads.shape import WALKERS, Shape
from cupola.cpu.compiler.errors import ImageError
from cupola.cpu.compiler.facts import FOR_DEBUGGER, KernelInfo, VariableInfo, counts_lines
from cupola.cpu.compiler.images.device_runtime import UPDATES, link_device_runtime
from cupola.cpu.compiler.objects import abi
from cupola.cpu.compiler.objects.device_calls import ASKED, FUNCTIONS
from cupola.cpu.compiler.objects.recall import without_source_names
from cupola.cpu.compiler.passes.control_flow import suspends
from cupola.cpu.compiler.passes.thread_numbers import largest_compared
from cupola.cpu.compiler.ptx import ast
from cupola.cpu.compiler.ptx.errors import describe
from cupola.cpu.compiler.records import dataclass

_SYSTEM_CALLS = {"vprintf": 1, "malloc": 2, "free": 2}
_ASSUMED_REGISTERS = 32
_SHARED_OF_PTX = 48 << 10
"""Bytes of static shared memory that NVIDIA's assembler lets a kernel have."""
_SHARED_OF_CUBINS = 256 << 10
"""What it has assembled may have some more, for itself."""
"""Registers of a thread if there is no cubin, which would say how many."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel ready for the emitter."""

    function: ast.Function
    layout: Layout
    info: KernelInfo

    def facts(self, shape: Shape, *, rolled: bool = False) -> Facts:
        """What the emitter wants to know about the kernel, for blocks of a shape.

        ``rolled``: loops that a compiler has unrolled may be one again, where threads run one by one.
        """
        analysis = passes.analyze(
            passes.roll_loops(self.function) if rolled and shape.width in (1, WALKERS) else self.function,
            width=shape.width,
            x_is_contiguous=shape.contiguous,
            rows_are_whole=shape.contiguous and shape.full,
            largest_x=shape.largest_x,
            suspends=suspends,
        )
        return Facts(self.info.name, analysis, self.layout, shape)


def _walkers(function: ast.Function) -> int:
    """How many threads of a kernel are better run at a time than all of a warp; 0 if that is not so."""
    if not passes.walk_alone(function):
        return 0
    return WALKERS if passes.walk_abreast(function) else 1


class ParsedModule:
    """A module whose PTX has been read.

    Attributes
    ----------
    entries : list of (str, int)
        The names of the kernels, and their addresses (`KernelInfo.code`).
    variables : list of VariableInfo
        In the order in which the runtime wants their addresses.
    """

    def __init__(self, text: str, registers: dict[str, int], architecture: int = 0, *, lazily: bool = False) -> None:
        self.architecture = architecture
        self._lock = threading.Lock()
        self._kernels: dict[int, Kernel] = {}
        try:
            marked = counts_lines(text)
            self.module = ptx.parse(text, lazily=lazily and not marked and not text.endswith(FOR_DEBUGGER))
            if marked or text.endswith(FOR_DEBUGGER):
                passes.mark_lines(self.module, ends=not marked)
            self.module.code_base = _code_base(text)
            link_device_runtime(self.module)
            self.registers = registers
            self._places = module_places(self.module)
            self._numbers = {name: number for number, name in enumerate(self.module.functions)}
            self._asks = not ASKED.keys().isdisjoint(self._numbers)
            self._updates = not self._numbers.keys().isdisjoint(UPDATES)
            self._functions = [
                function
                for function in self.module.functions.values()
                if function.is_entry and function.body is not None
            ]
        except ptx.PtxError as error:
            raise ImageError("CUDA_ERROR_INVALID_PTX", str(error)) from error
        self.entries = [(function.name, self._code(function)) for function in self._functions]
        if not lazily:
            for index in range(len(self._functions)):
                self.kernel(index)
        _check_addresses(self.module)
        self.variables = [
            VariableInfo(v.name, _space(v), v.size, v.align, *_with_functions(self.module, v), v.managed)
            for v in module_variables(self.module)
        ]

    def kernel(self, index: int) -> Kernel:
        """A kernel by its place in ``entries``.

        Raises
        ------
        ImageError
            When there is an error in its PTX, or something that the CPU device cannot run.
        """
        with self._lock:
            kernel = self._kernels.get(index)
            if kernel is None:
                function = self._functions[index]
                try:
                    self.module.read_body(function)
                    kernel = self._kernels[index] = self._prepare(function)
                except ptx.PtxError as error:
                    raise ImageError("CUDA_ERROR_INVALID_PTX", str(error)) from error
            return kernel

    def _code(self, function: ast.Function) -> int:
        return code_address(self.module.code_base, self._numbers[function.name]) - abi.CODE_WINDOW

    def _prepare(self, function: ast.Function) -> Kernel:
        prepared = passes.prepare(self.module, function)
        instructions = [s for s in prepared.body or () if isinstance(s, ast.Instruction)]
        for instruction in instructions:
            problem = bodies.problem_with(instruction)
            if problem is not None:
                name = ".".join((instruction.opcode, *instruction.modifiers))
                raise ImageError(
                    "CUDA_ERROR_INVALID_PTX",
                    f"unsupported PTX instruction '{name}' in kernel '{function.name}' at "
                    f"{describe(instruction.location)}: {problem}",
                )
        layout = Layout.of(self.module, prepared, self._places)
        limit = _SHARED_OF_CUBINS if self.architecture else _SHARED_OF_PTX
        if layout.static_shared > limit:
            raise ImageError(
                "CUDA_ERROR_INVALID_PTX",
                f"Entry function '{function.name}' uses too much shared data ({layout.static_shared:#x} bytes, "
                f"{limit:#x} max)",
            )
        whole_warps = any(i.description.waits == "warp" or i.description.warp for i in instructions)
        compared = largest_compared(instructions)
        return Kernel(prepared, layout, self._describe(function, prepared, layout, compared, whole_warps=whole_warps))

    def _describe(
        self, function: ast.Function, prepared: ast.Function, layout: Layout, compared: int, *, whole_warps: bool
    ) -> KernelInfo:
        directives = function.directives
        required = directives.get("reqntid")
        limit = required or directives.get("maxntid")
        return KernelInfo(
            name=function.name,
            params=tuple((p.name, p.offset, p.size, p.align) for p in function.parameters),
            param_bytes=layout.param_bytes,
            static_shared=layout.static_shared,
            reserved_shared=layout.reserved_shared,
            local_bytes=layout.local_bytes,
            const_bytes=sum(v.size for v in self.module.variables.values() if v.space == "const"),
            registers=self.registers.get(function.name, _ASSUMED_REGISTERS),
            max_threads=min(1024, _product(limit)) if limit else 1024,
            required_block=_dim3(required),
            max_block=_dim3(limit),
            required_cluster=_dim3(directives.get("reqnctapercluster")),
            max_cluster=_product(directives.get("maxclusterrank", (0,))),
            must_have_cluster="explicitcluster" in directives and "reqnctapercluster" not in directives,
            blocks_are_clusters="blocksareclusters" in directives,
            is_tile_kernel=required is not None and directives.get("language") == (_TILES,),
            ptx_version=_architecture(self.module.target),
            binary_version=self.architecture,
            whole_warps=whole_warps,
            walkers=_walkers(prepared) if not whole_warps else 0,
            largest_compared=compared,
            has_stack=layout.has_stack,
            stack_bytes=prepared.stack_bytes,
            stack_grows=prepared.stack_grows,
            code=self._code(function),
            launches=self._launches(function, prepared),
            system_calls=_system_calls(prepared),
        )

    def _launches(self, function: ast.Function, prepared: ast.Function) -> int:
        """What a kernel asks of the device runtime (`KernelInfo.launches`)."""
        functions = tuple(FUNCTIONS.values())
        names = symbols(prepared) if self._asks else ()
        asked = [functions[ASKED[name]] for name in names if name in ASKED]
        reads = any(special.name.lstrip("%") == "current_graph_exec" for special in specials(prepared))
        updates = self._updates and not self._reachable(function).isdisjoint(UPDATES)
        return sum({2 if call.parallelism else 1 for call in asked}) + 4 * reads + 8 * updates

    def _reachable(self, function: ast.Function) -> set[str]:
        """The functions that a kernel calls, or takes the address of, and what those call."""
        found: set[str] = set()
        waiting = [function]
        while waiting:
            for name in symbols(waiting.pop()):
                if name in self.module.functions and name not in found:
                    found.add(name)
                    waiting.append(self.module.functions[name])
        return found


def _system_calls(prepared: ast.Function) -> int:
    """Which functions of the system a kernel calls (`KernelInfo.system_calls`)."""
    bits = 0
    for statement in prepared.body or ():
        match statement:
            case ast.Instruction("call", _, (_, ast.Symbol(name), *_)):
                bits |= _SYSTEM_CALLS.get(name, 0)
    return bits


def _code_base(text: str) -> int:
    """Where a module's functions have their addresses (`code_address`): each module elsewhere.

    So a kernel that is given the address of another module's function says so, and does not call one of its own with
    the same number. It goes by the text, because machine code with these addresses is kept for the next process.
    """
    return zlib.crc32(without_source_names(text).encode(errors="surrogatepass")) << 24


def _architecture(target: str) -> int:
    """The number of a target such as ``sm_90a``; sm_10 is what PTX ISA 11.1.2 has for code that names none."""
    number = re.search(r"_(\d+)", target)
    return int(number[1]) if number else 10


def _check_addresses(module: ast.Module) -> None:
    """Refuse initial values that hold addresses of what the module does not have."""
    variables = module_variables(module)
    known = {variable.name for variable in variables} | module.functions.keys()
    for variable in variables:
        for _, _, symbol, _, _ in variable.relocations:
            if symbol not in known:
                raise ImageError(
                    "CUDA_ERROR_INVALID_PTX",
                    f"the initial value of '{variable.name}' holds the address of '{symbol}', which is neither a "
                    "global variable nor a function of the module",
                )


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
            address = code_address(module.code_base, numbers[symbol]) + addend & (1 << 8 * width) - 1
            data[offset : offset + width] = address.to_bytes(width, "little")
        else:
            others.append(relocation)
    return bytes(data), tuple(others)


_TILES = 7
"""The number with `.language` of kernels that NVIDIA's tile compiler makes (cuTile)."""


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


def _space(variable: ast.Variable) -> str:
    """Where a variable is, or that it refers to a texture or surface, which the driver writes there."""
    return variable.type if variable.type in ("texref", "surfref") else variable.space
