"""What can be seen while a kernel is stopped: its threads, the functions that they are in, and their variables."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from functools import cached_property

from cupola.cpu import _driver
from cupola.cpu.compiler.ptx import ast

from . import dwarf
from .code import Call, Code
from .dwarf import Member, Type, array_name
from .sources import lines_of
from .values import (
    FLOAT,
    FRAME,
    GLOBAL,
    INT,
    LOCAL,
    PARAM,
    SHARED,
    TYPES,
    UNSIGNED,
    ExpressionError,
    Place,
    Value,
    load,
    make,
)

Dim3 = tuple[int, int, int]

WARP = 32

_DIM3 = Type(
    "struct", "uint3", 12, members=[Member("x", UNSIGNED, 0), Member("y", UNSIGNED, 4), Member("z", UNSIGNED, 8)]
)
_SPECIAL = {"%tid": "threadIdx", "%ctaid": "blockIdx", "%ntid": "blockDim", "%nctaid": "gridDim"}
BUILTIN = ("threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize")


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch whose kernel is stopped."""

    code: Code
    grid_id: int
    grid: Dim3
    block_dim: Dim3
    origin: tuple[str, int] | None

    def place_of(self, thread: int) -> Dim3:
        """The index of a thread of a block, as ``threadIdx`` has it."""
        x, y, _ = self.block_dim
        return thread % x, thread // x % y, thread // (x * y)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        x, y, z = self.block_dim
        return x * y * z


@dataclass(frozen=True, slots=True)
class Warp:
    """A warp of the block that is stopped."""

    first: int
    there: int
    alive: int
    begun: bool
    parked: int
    syncing: int
    barriers: tuple[int, ...]
    record: tuple[int, ...]


class Threads:
    """The threads of the block that is stopped."""

    def __init__(self, launch: Launch, block: Dim3, lanes: int, warp: int, at: ast.Instruction | None = None) -> None:
        self.at = at
        self.launch = launch
        self.block = block
        self.running = lanes
        self.running_warp = warp

    @cached_property
    def warps(self) -> list[Warp]:
        """Its warps."""
        return [
            Warp(*row[:3], bool(row[3]), *row[4:6], struct.unpack("<32I", row[6]), struct.unpack("<32I", row[7]))
            for row in _driver.debug_warps()
        ]

    def status(self, thread: int) -> str:
        """What a thread does: ``"here"``, ``"at a line"``, ``"at barrier 0"``, ``"exited"``, ``"not begun"``."""
        warp, bit = self.warps[thread // WARP], 1 << thread % WARP
        if not warp.begun:
            return "not begun"
        if not warp.alive & bit:
            return "exited"
        if warp.parked & bit:
            number = warp.barriers[thread % WARP]
            return f"at barrier {number}" if number < 16 else "at a barrier of the cluster or warpgroup"
        if warp.syncing & bit:
            return "at __syncwarp()"
        if thread // WARP == self.running_warp and self.running & bit:
            return "here"
        return "at a line"

    def instruction(self, thread: int) -> ast.Instruction | None:
        """The line at which a thread is, by its first instruction; None when it has not begun, or has exited."""
        if self.status(thread) in ("not begun", "exited"):
            return None
        if self.at is not None and thread // WARP == self.running_warp and self.running >> thread % WARP & 1:
            return self.at
        return self.before(thread)

    def before(self, thread: int) -> ast.Instruction | None:
        """The line to which a thread came last, before the one at which it is stopped."""
        number = self.warps[thread // WARP].record[thread % WARP]
        code = self.launch.code
        return code.instructions[number - 1] if 0 < number <= len(code.instructions) else None

    def calls(self, thread: int, instruction: ast.Instruction | None = None) -> list[Call]:
        """The functions that a thread is in."""
        at = instruction or self.instruction(thread)
        if at is None:
            return []
        if not self.launch.code.variant.has_stack:
            return self.launch.code.inlined_at(at)
        return self.launch.code.calls_at(at, _driver.debug_calls(thread))


class Frame:
    """A function that a thread is in, as expressions see it.

    Parameters
    ----------
    threads
        Of the block.
    thread
        The linear index of the thread.
    call
        The function.
    """

    def __init__(self, threads: Threads, thread: int, call: Call) -> None:
        self.threads = threads
        self.launch = threads.launch
        self.code = threads.launch.code
        self.call = call
        self._thread = thread

    @property
    def thread(self) -> int:
        """The linear index of the thread."""
        return self._thread

    @property
    def file(self) -> str:
        """Where it is."""
        return self.code.file_of(self.call.location)

    @property
    def line(self) -> int:
        """Where it is in the file."""
        return self.code.line_of(self.call.location)

    @property
    def function(self) -> str:
        """The name of the function."""
        return self.code.function_of(self.call.location)

    def read(self, place: Place, size: int) -> bytes | None:
        """Memory as the thread sees it."""
        if place.address < 0 or place.address >> 64 or not 0 <= size <= 1 << 24:
            return None
        return _driver.debug_read(place.space, place.who, place.address, size)

    # --- variables --------------------------------------------------------------------------------------------------

    def declared(self) -> list[dwarf.Variable]:
        """The variables and parameters that can be named here, the innermost of each name."""
        return list(self.code.declared_at(self.call.location.ptx_line).values())

    def parameters(self) -> list[tuple[str, int, int, str]]:
        """The parameters of the kernel as the PTX has them, without its name: name, offset, size and type."""
        function = self.code.facts.analysis.function
        own = f"{self.code.name}_"
        return [(p.name.removeprefix(own), p.offset, p.size, p.type) for p in function.parameters]

    def value_of(self, variable: dwarf.Variable) -> Value:
        """The value of a variable here."""
        if self.call.outer:
            return Value(variable.type, None)  # of an outer call of a recursive function
        where = variable.place_at(self.call.location.ptx_line)
        if where is None:
            place = None if variable.places else self._parameter(variable)
            return Value(variable.type, None) if place is None else load(variable.type, place, self.read)
        if where.constant is not None:
            return make(variable.type, where.constant)
        if where.register:
            data = self._register_data(where.register + self.call.suffix)
            return Value(variable.type, None if data is None else self._fitted(data, variable.type))
        assert where.symbol is not None
        place = self._symbol(where.symbol)
        return Value(variable.type, None) if place is None else load(variable.type, place, self.read)

    def _parameter(self, variable: dwarf.Variable) -> Place | None:
        """Of a parameter of the kernel that has no other place (``__grid_constant__``), where it was passed."""
        function = self.code.info.function_at(self.call.location.ptx_line)
        if not variable.is_parameter or function is None or function.symbol != self.code.name:
            return None
        names = [each.name for each in function.variables if each.is_parameter]
        known = self.parameters()
        if len(names) != len(known):
            return None
        _, offset, size, _ = known[names.index(variable.name)]
        return Place(PARAM, 0, offset) if size >= variable.type.size else None

    @staticmethod
    def _fitted(data: bytes, type: Type) -> bytes | None:
        size = type.size
        return data[:size] if 0 < size <= len(data) else None

    def _symbol(self, symbol: dwarf.Symbol) -> Place | None:
        places = self.code.facts.layout.places
        function = self.code.ptx_function(self.call.location.ptx_line)
        for name in (symbol.name + self.call.suffix, f"{symbol.name}.{function}", symbol.name):
            place = places.get(name)
            if place is None:
                continue
            if place.space == "local":
                return Place(LOCAL, self.thread, place.offset + symbol.offset)
            if place.space == "shared":
                return Place(SHARED, 0, place.offset + symbol.offset)
            if place.space == "param":
                return Place(PARAM, 0, place.offset + symbol.offset)
            if place.space in ("global", "const"):
                return Place(GLOBAL, 0, _driver.debug_variable(place.offset) + symbol.offset)
        return self._in_frame(symbol)

    def _in_frame(self, symbol: dwarf.Symbol) -> Place | None:
        """Of a local variable of a recursive function, which is on the thread's stack."""
        for part in self.code.facts.analysis.function.parts.values():
            for name, slot in part.slots:
                data = self._register_data(part.frame) if name == symbol.name + self.call.suffix else None
                if data is not None:
                    return Place(LOCAL, self.thread, int.from_bytes(data, "little") + slot + symbol.offset)
        return None

    def variable(self, name: str) -> Value:
        """A variable, a special variable, or a register.

        Raises
        ------
        ExpressionError
            When there is none.
        """
        if name[0] == "%":
            return self.register(name)
        declared = self.code.declared_at(self.call.location.ptx_line).get(name)
        if declared is not None:
            value = self.value_of(declared)
            if value.data is None and value.place is None:
                raise ExpressionError(self._why_unknown(declared))
            return value
        if name in BUILTIN:
            return self._builtin(name)
        for variable in self.code.info.variables:
            if variable.name == name or name.endswith("::" + variable.name):
                return self.value_of(variable)
        for parameter, offset, size, kind in self.parameters():
            if parameter == name or name == f"{self.code.name}_{parameter}":
                return load(_ptx_type(kind, size), Place(PARAM, 0, offset), self.read)
        found = self._static(name) or self._module_variable(name)
        if found is not None:
            return found
        raise ExpressionError(f"there is no variable {name!r} here{self._hint()}")

    def _why_unknown(self, variable: dwarf.Variable) -> str:
        if self.call.outer:
            return (
                f"{variable.name!r} is of an outer call of a recursive function: only those of the last call are kept"
            )
        line = f" (it is declared in line {variable.line})" if variable.line else ""
        return f"{variable.name!r} has no value here: it is not set yet, not needed any more, or in parts{line}"

    def _hint(self) -> str:
        if self.code.problem:
            return f": {self.code.problem}"
        if self.code.info.functions:
            return ""
        names = ", ".join(name for name, *_ in self.parameters())
        known = f"; there are registers (info registers), and the parameters {names}" if names else ""
        return f": the program was not compiled with debug=True (nvcc -G), so variables are not known{known}"

    def _builtin(self, name: str) -> Value:
        if name == "warpSize":
            return make(INT, WARP)
        numbers = {
            "threadIdx": self.launch.place_of(self.thread),
            "blockIdx": self.threads.block,
            "blockDim": self.launch.block_dim,
            "gridDim": self.launch.grid,
        }[name]
        return Value(_DIM3, struct.pack("<3I", *numbers))

    def _of_functions(self) -> dict[str, str]:
        """Variables in shared memory that belong to functions, by their names, with those that the PTX has for them."""
        found = {}
        for symbol, place in self.code.facts.layout.places.items():
            match = re.match(r"_ZZ\w*E(\d+)(\w+)", symbol)
            if match and place.space == "shared":
                found[match[2][: int(match[1])]] = symbol
        return found

    def _static(self, name: str) -> Value | None:
        """A variable in shared memory that belongs to a function: compilers say nothing of these but in the source."""
        symbol = self._of_functions().get(name)
        if symbol is None:
            return None
        place = self.code.facts.layout.places[symbol]
        element, counts = self._declared_type(name)
        size = element.size
        for count in counts:
            size *= count
        if size != place.size:  # what the extents are is not written there as numbers
            element = element if element.size and place.size % element.size == 0 else TYPES["unsigned char"]
            counts = [place.size // element.size]
        kind = element
        for count in reversed(counts):
            kind = Type("array", array_name(kind, count), count * kind.size, kind, count)
        return load(kind, Place(SHARED, 0, place.offset), self.read)

    def _declared_type(self, name: str) -> tuple[Type, list[int]]:
        """The type and the extents with which the source declares a variable in shared memory."""
        declaration = re.compile(
            rf"__shared__\s+([^;(){{}}]*?[\w>])\s+[^;(){{}}]*?\b{name}\b\s*((?:\[[^\]]*\]\s*)*)[;,=]"
        )
        plain = re.compile(rf"__shared__\s+([^;(){{}}]*?[\w>*])\s*\b{name}\b\s*((?:\[[^\]]*\]\s*)*)[;,=]")
        text = "\n".join(lines_of(self.code, self.file))
        match = plain.search(text) or declaration.search(text)
        if match is None:
            return TYPES["unsigned char"], []
        words = [w for w in match[1].split() if w not in ("volatile", "const", "alignas", "__align__")]
        words = [w for w in " ".join(words).split(",")[0].split() if w]
        kind = self.type_named(" ".join(words)) or TYPES["unsigned char"]
        extents = re.findall(r"\[([^\]]*)\]", match[2])
        counts = [int(extent) for extent in extents if extent.strip().isdigit()]
        return kind, counts if len(counts) == len(extents) else []

    def _module_variable(self, name: str) -> Value | None:
        """A variable of the module that only the PTX knows."""
        place = self.code.facts.layout.places.get(name)
        if place is None or place.space not in ("global", "const", "shared"):
            return None
        variable = self.code.variant.module.parsed().module.variables.get(name)
        kind = _ptx_type(variable.type if variable is not None else "b8", 0)
        where = self._symbol(dwarf.Symbol(name))
        count = place.size // max(1, kind.size)
        if where is None:
            return None
        whole = Type("array", f"{kind.name}[{count}]", count * kind.size, kind, count) if count > 1 else kind
        return load(whole, where, self.read)

    def type_named(self, name: str) -> Type | None:
        """A type of the program."""
        return self.code.info.types.get(name) or TYPES.get(name)

    # --- registers --------------------------------------------------------------------------------------------------

    def registers(self) -> list[str]:
        """The names of the registers of this function, as the PTX has them."""
        suffix = self.call.suffix
        names = [name for name in self.code.homes if name.endswith(suffix) and not name.startswith("%.")]
        own = [name.removesuffix(suffix) for name in names]
        return sorted((name for name in own if "." not in name), key=_in_order)

    def _register_data(self, name: str) -> bytes | None:
        home = self.code.homes.get(name)
        if home is None:
            return None
        warp, lane = divmod(self.thread, WARP)
        size = self.code.register_bytes(name)
        if not size:
            mask = _driver.debug_read(FRAME, warp, home.slot, 4)
            return None if mask is None else bytes([mask[lane // 8] >> lane % 8 & 1])
        return _driver.debug_read(FRAME, warp, home.slot + lane * size, size)

    def register(self, name: str) -> Value:
        """What a register of the PTX holds, or a special register such as ``%tid.x``.

        Raises
        ------
        ExpressionError
            When there is none of that name.
        """
        base, _, component = name.partition(".")
        if base in _SPECIAL and component in ("x", "y", "z"):
            return make(
                UNSIGNED, struct.unpack("<3I", self._builtin(_SPECIAL[base]).data or b"")["xyz".index(component)]
            )
        if name in ("%laneid", "%warpid"):
            return make(UNSIGNED, self.thread % WARP if name == "%laneid" else self.thread // WARP)
        for known in (name + self.call.suffix, name):
            data = self._register_data(known)
            if data is not None:
                return Value(_register_type(self.code.facts.analysis.registers[known], name, len(data)), data)
        raise ExpressionError(f"there is no register {name!r} in this function, or nothing uses it")


def _in_order(name: str) -> tuple[str, int, str]:
    letters = name.rstrip("0123456789")
    digits = name[len(letters) :]
    return letters, int(digits or 0), name


def _register_type(kind: str, name: str, size: int) -> Type:
    if kind == "pred":
        return TYPES["bool"]
    if kind in ("f32", "f64") or (size == 4 and name.startswith("%f")):
        return FLOAT if size == 4 else TYPES["double"]
    return Type("int", f"int{8 * size}_t", size) if size <= 8 else Type("uint", "b128", size)


def _ptx_type(kind: str, size: int) -> Type:
    if kind in ("f32", "f64"):
        return TYPES["float" if kind == "f32" else "double"]
    bits = "".join(c for c in kind if c.isdigit())
    width = int(bits or 32) // 8
    element = Type("int" if kind[:1] == "s" else "uint", f"{kind}", width)
    if size > width:
        return Type("array", f"{kind}[{size // width}]", size, element, size // width)
    return element
