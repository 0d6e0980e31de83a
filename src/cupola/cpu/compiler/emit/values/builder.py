"""Writes LLVM IR text for one function, keeping track of what is the same in every lane of the warp.

Every operation on uniform values stays scalar; sums, differences and multiples of affine values stay affine
(see :mod:`.values`); all else becomes a vector operation with an element for each lane. With ``width`` 1
there are no vectors at all, and the same calls write the scalar engine's code.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace

from . import patterns
from .patterns import Pattern
from .values import BITS, Affine, Origin, Value, signed

_FOLD: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}
"""What is computed at once when both operands are literals, so that results are literals too."""

_OVERLOAD = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64"}
_FLOAT_PREFIX = {"half": "0xH", "bfloat": "0xR"}


def constant(type: str, bits: int) -> Value:
    """The literal of ``type`` with these bits (for floating types the IEEE encoding)."""
    bits &= (1 << BITS[type]) - 1
    if type == "i1":
        return Value("true" if bits else "false", type)
    if type[0] == "i":
        return Value(str(signed(bits, BITS[type])), type)
    if type == "double":
        return Value(f"0x{bits:016X}", type)
    if type in _FLOAT_PREFIX:
        return Value(f"{_FLOAT_PREFIX[type]}{bits:04X}", type)
    if bits & 0x7F800000 == 0x7F800000 and bits & 0x7FFFFF:
        # LLVM writes a float as the double of the same value; signaling NaNs would not survive that.
        return Value(f"bitcast (i32 {bits} to float)", type)
    (number,) = struct.unpack("<f", struct.pack("<I", bits))
    return Value(f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}", type)


def real(type: str, number: float) -> Value:
    """The literal of a floating ``type`` nearest to ``number``."""
    code, integer = {"half": ("<e", "<H"), "float": ("<f", "<I"), "double": ("<d", "<Q")}[type]
    return constant(type, struct.unpack(integer, struct.pack(code, number))[0])


class Builder:
    """Appends LLVM text to ``lines``; what belongs elsewhere in the module is collected beside it.

    Attributes
    ----------
    width
        Lanes of a warp; 1 for the scalar engine.
    lines
        The instructions written so far.
    allocas
        Instructions for the entry block (stack slots asked for with :meth:`alloca`).
    declarations
        ``declare`` lines of the intrinsics and helpers used. Share one dict between all builders of a module.
    functions
        Definitions of shared internal functions by name. Share one dict between all builders of a module.
    active
        The i1 mask of the lanes that execute: a vector, or the uniform ``true`` on the full-mask path.
    canonical_nans
        Whether f32 arithmetic replaces every NaN result by 0x7fffffff, as the hardware does. If not, it marks
        results as ``raw_nan``, and code that uses their bits calls ``instructions.settle_nans`` first.
    """

    def __init__(
        self,
        width: int,
        *,
        declarations: dict[str, None] | None = None,
        functions: dict[str, str] | None = None,
        prefix: str = "t",
    ) -> None:
        self.width = width
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.declarations: dict[str, None] = {} if declarations is None else declarations
        self.functions: dict[str, str] = {} if functions is None else functions
        self.active = Value("true", "i1")
        self.canonical_nans = True
        self.prefix = prefix
        self._counter = 0
        self._calls: dict[str, int] = {}
        self._masked: dict[str, tuple[str, int]] = {}
        """What ``x & mask`` was computed into, of patterns: x and the mask."""
        self._small: dict[str, tuple[str, int]] = {}
        """Of vectors of wider integers that are made of bytes: the same in 16 bits, and the largest that it can be."""

    # Text

    def line(self, text: str) -> None:
        """Append one instruction that has no result."""
        self.lines.append("  " + text)

    def emit(self, text: str) -> str:
        """Append one instruction and return the name of its result."""
        name = self.new_name()
        self.lines.append(f"  {name} = {text}")
        return name

    def new_name(self) -> str:
        self._counter += 1
        return f"%{self.prefix}{self._counter}"

    def new_label(self, hint: str = "l") -> str:
        """A fresh label (without ``%`` or colon)."""
        self._counter += 1
        return f"{hint}.{self._counter}"

    def label(self, name: str) -> None:
        """Begin the basic block ``name``."""
        self.lines.append(f"{name}:")

    def alloca(self, type: str, align: int = 64) -> str:
        """A stack slot in the entry block; returns the pointer."""
        name = self.new_name()
        self.allocas.append(f"  {name} = alloca {type}, align {align}")
        return name

    # Types and operands

    def vector_type(self, type: str) -> str:
        """The LLVM type of a varying value whose lanes have ``type``."""
        return f"<{self.width} x {type}>" if self.width > 1 else type

    def type_of(self, value: Value) -> str:
        return self.vector_type(value.type) if value.vector else value.type

    def typed(self, value: Value) -> str:
        """Type and operand, as written in an argument list."""
        return f"{self.type_of(value)} {value.ir}"

    def constant(self, type: str, bits: int) -> Value:
        """See :func:`constant`."""
        return constant(type, bits)

    def real(self, type: str, number: float) -> Value:
        """See :func:`real`."""
        return real(type, number)

    def iota(self, type: str = "i32") -> Value:
        """The lane number: 0, 1, 2 ..."""
        if self.width == 1:
            return constant(type, 0)
        lanes = ", ".join(f"{type} {signed(lane, BITS[type])}" for lane in range(self.width))
        pattern = Pattern("0", tuple(range(self.width)), 0)
        return Value(f"<{lanes}>", type, True, Affine("0", 1), pattern=pattern)

    def per_lane(self, type: str, bits: Sequence[int]) -> Value:
        """A varying constant with the given bits in each lane."""
        if self.width == 1:
            return constant(type, bits[0])
        return Value("<" + ", ".join(f"{type} {constant(type, b).ir}" for b in bits) + ">", type, True)

    def splat(self, value: Value) -> Value:
        """The same value as a vector (unchanged when it already is one, or when there are no vectors)."""
        if value.vector or self.width == 1:
            return value
        vector = self.vector_type(value.type)
        if value.is_constant:
            return Value(f"splat ({value.type} {value.ir})", value.type, True)
        first = self.emit(f"insertelement {vector} poison, {value.type} {value.ir}, i32 0")
        mask = f"<{self.width} x i32> zeroinitializer"
        return Value(self.emit(f"shufflevector {vector} {first}, {vector} poison, {mask}"), value.type, True)

    def align_shapes(self, *values: Value) -> tuple[Value, ...]:
        """All as vectors when one is, otherwise unchanged."""
        return tuple(map(self.splat, values)) if any(v.vector for v in values) else values

    def lane(self, value: Value, index: int | Value) -> Value:
        """The uniform value that one lane holds."""
        if not value.vector:
            return value
        at = f"i32 {index}" if isinstance(index, int) else self.typed(index)
        return Value(self.emit(f"extractelement {self.typed(value)}, {at}"), value.type)

    def from_lanes(self, lanes: Sequence[Value]) -> Value:
        """A varying value out of one scalar for each lane."""
        if self.width == 1:
            return lanes[0]
        type = lanes[0].type
        vector = self.vector_type(type)
        ir = "poison"
        for index, scalar in enumerate(lanes):
            ir = self.emit(f"insertelement {vector} {ir}, {type} {scalar.ir}, i32 {index}")
        return Value(ir, type, True)

    # Operations

    def binary(self, op: str, a: Value, b: Value) -> Value:
        """``add``, ``fmul``, ``lshr`` … of two values of one type; ``op`` may carry flags (``add nuw``)."""
        left, right = a.integer, b.integer
        if left is not None and right is not None and op in _FOLD:
            return constant(a.type, _FOLD[op](left, right))
        rest = self._rest(op, a, b)
        if rest is not None:
            return rest
        affine = self._affine_binary(op, a, b)
        if affine is not None and affine.stride == 0 and affine.exact == "true":
            return Value(affine.base, a.type)
        pattern = patterns.combine(self, op, a, b) if a.pattern or b.pattern else None
        if pattern is not None:
            if pattern.is_uniform:
                return self._remember(op, a, b, Value(pattern.base, a.type))
            if affine is None or affine.exact != "true":
                affine = patterns.line(pattern) or affine
        small = self._small_binary(op, a, b) if affine is None and pattern is None and self._small else None
        if small is not None:
            return small
        x, y = self.align_shapes(a, b)
        result = Value(self.emit(f"{op} {self.typed(x)}, {y.ir}"), x.type, x.vector, affine, pattern=pattern)
        return self._remember(op, a, b, result) if pattern is not None else result

    def _small_binary(self, op: str, a: Value, b: Value) -> Value | None:
        """Computed in 16 bits, of which a vector holds twice as many, when the result is certain to fit."""
        x, y = self._in_16_bits(a), self._in_16_bits(b)
        if x is None or y is None or op not in ("add", "mul") or a.type == "i16":
            return None
        most = x[1] + y[1] if op == "add" else x[1] * y[1]
        if most > 0xFFFF:
            return None
        narrow = self.emit(f"{op} nuw {self.vector_type('i16')} {x[0]}, {y[0]}")
        wide = self.emit(f"zext {self.vector_type('i16')} {narrow} to {self.vector_type(a.type)}")
        self._small[wide] = narrow, most
        return Value(wide, a.type, True)

    def _in_16_bits(self, value: Value) -> tuple[str, int] | None:
        number = value.integer
        if number is not None:
            return (f"splat (i16 {signed(number, 16)})", number) if 0 <= number <= 0xFFFF else None
        return self._small.get(value.ir) if value.vector else None

    def _note_small(self, value: Value, wide: Value) -> None:
        """Bytes that are widened with zeros are kept in 16 bits, too; what is not used is left out by LLVM."""
        if not value.vector or wide.affine or wide.type not in ("i16", "i32", "i64"):
            return
        if value.type == "i8":
            is_narrow = wide.type == "i16"
            narrow = wide.ir if is_narrow else self.emit(f"zext {self.typed(value)} to {self.vector_type('i16')}")
            self._small[wide.ir] = narrow, 0xFF
        elif value.ir in self._small:
            self._small[wide.ir] = self._small[value.ir]

    def _remember(self, op: str, a: Value, b: Value, result: Value) -> Value:
        if op == "and" and b.integer is not None:
            self._masked[result.ir] = a.ir, b.integer
        return result

    def _rest(self, op: str, a: Value, b: Value) -> Value | None:
        """``x + 0`` is x, and ``x - (x & mask)``, as a remainder is computed, what the mask left out."""
        if op == "add" and (a.integer == 0 or b.integer == 0):
            return b if a.integer == 0 else a
        if op == "sub" and b.ir in self._masked:
            source, mask = self._masked[b.ir]
            if source == a.ir:
                return self.binary("and", a, constant(a.type, ~mask))
        return None

    def _affine_binary(self, op: str, a: Value, b: Value) -> Affine | None:
        if not (a.vector or b.vector) or a.type[0] != "i" or a.type == "i1":
            return None
        x, y = a.line(), b.line()
        name = op.split()[0]
        if x is not None and x.whole and b.integer is not None and name in ("and", "lshr", "ashr"):
            return self._whole_binary(name, x, b)
        if x is None or y is None or name not in ("add", "sub", "mul", "shl"):
            return None
        bits = BITS[a.type]
        if name in ("add", "sub"):
            sign = -1 if name == "sub" else 1
            stride = x.stride + sign * y.stride
            origin = self._common_origin(x, y, sign)
        else:
            line, factor = (x, b.integer) if a.vector else (y, a.integer)
            if factor is None or (name == "shl" and not (a.vector and 0 <= factor < bits)):
                return None
            factor = 1 << factor if name == "shl" else factor
            stride = line.stride * factor
            origin = replace(line.origin, scale=line.origin.scale * factor) if line.origin is not None else None
        base = self.binary(name, Value(x.base, a.type), Value(y.base, b.type)).ir
        return Affine(base, signed(stride, bits), self.both(x.exact, y.exact), origin)

    def _whole_binary(self, name: str, line: Affine, b: Value) -> Affine | None:
        """Masking or shifting a multiple of the width plus the lane number, which then are apart or gone."""
        number, lane_bits = b.integer, self.width - 1
        assert number is not None
        if name == "and":
            stride = {lane_bits: 1, 0: 0}.get(number & lane_bits)
        else:
            stride = 0 if 1 << number > lane_bits else None
        if stride is None:
            return None
        return Affine(self.binary(name, Value(line.base, b.type), b).ir, stride, whole=stride == 1)

    def _common_origin(self, x: Affine, y: Affine, sign: int) -> Origin | None:
        """The origin of a sum (of a difference: with sign -1), when one is enough to describe it."""
        if y.origin is None:
            return x.origin if y.exact == "true" else None
        if x.origin is None:
            return replace(y.origin, scale=sign * y.origin.scale) if x.exact == "true" else None
        if replace(x.origin, scale=0) != replace(y.origin, scale=0):
            return None
        return replace(x.origin, scale=x.origin.scale + sign * y.origin.scale)

    def lanes_on_line(self, type: str, line: Affine) -> Value:
        """The vector of an affine value, made from its scalars; the line must be exact or have an origin."""
        origin, first = line.origin, self.splat(Value(line.base, type))
        slope = line.stride if origin is None else line.stride - origin.scale * origin.step
        lanes = first
        if slope:
            lanes = self.binary("add", first, self.per_lane(type, [lane * slope for lane in range(self.width)]))
        if origin is not None:
            steps = self.per_lane(origin.type, [lane * origin.step for lane in range(self.width)])
            narrow = Value(origin.narrow, origin.type)
            widen = "sext" if origin.signed else "zext"
            wide = self.cast(widen, self.binary("add", self.splat(narrow), steps), type)
            away = self.binary("sub", wide, self.splat(self.cast(widen, narrow, type)))
            lanes = self.binary("add", lanes, self.binary("mul", away, constant(type, origin.scale)))
        return replace(lanes, affine=line)

    def stays_on_line(self, origin: Origin) -> str:
        """The i1 that says that none of the narrow lanes of an origin wrapped."""
        bits, reach = BITS[origin.type], origin.step * (self.width - 1)
        low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if origin.signed else (0, (1 << bits) - 1)
        base = Value(origin.narrow, origin.type)
        sign = "s" if origin.signed else "u"
        if reach >= 0:
            return self.compare(f"icmp {sign}le", base, constant(origin.type, high - reach)).ir
        return self.compare(f"icmp {sign}ge", base, constant(origin.type, low - reach)).ir

    def both(self, x: str, y: str) -> str:
        """The conjunction of two scalar i1 operands."""
        if x == "true" or x == y:
            return y
        if y == "true":
            return x
        if "false" in (x, y):
            return "false"
        return self.emit(f"and i1 {x}, {y}")

    def unary(self, op: str, a: Value) -> Value:
        """``fneg``."""
        return Value(self.emit(f"{op} {self.typed(a)}"), a.type, a.vector)

    def compare(self, op: str, a: Value, b: Value) -> Value:
        """``op`` is a whole comparison: ``icmp slt``, ``fcmp uno`` …; an i1 for each lane."""
        a, b = self.align_shapes(a, b)
        return Value(self.emit(f"{op} {self.typed(a)}, {b.ir}"), "i1", a.vector)

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """``condition ? a : b``."""
        if condition.ir == "true":
            return a
        if condition.ir == "false":
            return b
        if condition.vector:
            a, b = self.splat(a), self.splat(b)
            return Value(self.emit(f"select {self.typed(condition)}, {self.typed(a)}, {self.typed(b)}"), a.type, True)
        affine = None
        x, y = a.line(), b.line()
        if (a.vector or b.vector) and x is not None and y is not None and x.stride == y.stride:
            chosen = self.select(condition, Value(x.base, a.type), Value(y.base, a.type))
            exact = self.select(condition, Value(x.exact, "i1"), Value(y.exact, "i1"))
            affine = Affine(chosen.ir, x.stride, exact.ir)
        a, b = self.align_shapes(a, b)
        ir = self.emit(f"select i1 {condition.ir}, {self.typed(a)}, {self.typed(b)}")
        return Value(ir, a.type, a.vector, affine)

    def cast(self, op: str, value: Value, type: str) -> Value:
        """``trunc``, ``sext``, ``zext``, ``fpext``, ``sitofp`` …; nothing when the type is so already."""
        if value.type == type:
            return value
        number = value.integer
        if number is not None and type[0] == "i" and op in ("trunc", "sext", "zext"):
            if value.type == "i1":
                return constant(type, -number if op == "sext" else number)
            return constant(type, number & ((1 << BITS[value.type]) - 1) if op == "zext" else number)
        affine = self._affine_cast(op, value, type) if value.affine else None
        pattern = patterns.widened(self, op, value, type) if value.pattern else None
        if pattern is not None and (affine is None or affine.exact != "true"):
            affine = patterns.line(pattern) or affine
        ir = self.emit(f"{op} {self.typed(value)} to {self.vector_type(type) if value.vector else type}")
        wide = Value(ir, type, value.vector, affine, pattern=pattern)
        if op == "zext":
            self._note_small(value, wide)
        return wide

    def _affine_cast(self, op: str, value: Value, type: str) -> Affine | None:
        line = value.affine
        assert line is not None
        bits = BITS[value.type]
        if op == "trunc" and type != "i1":
            base = self.cast("trunc", Value(line.base, value.type), type)
            return Affine(base.ir, signed(line.stride, BITS[type]), line.exact)
        if op not in ("sext", "zext") or value.type == "i1":
            return None
        # The wide lanes are on a line only when no narrow lane wrapped on the way from lane 0 to the last.
        reach = line.stride * (self.width - 1)
        low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if op == "sext" else (0, (1 << bits) - 1)
        base = Value(line.base, value.type)
        if line.whole:
            return Affine(self.cast(op, base, type).ir, 1, whole=True)
        if abs(reach) > high - low:
            return Affine(self.cast(op, base, type).ir, line.stride, "false")
        number = base.integer
        if number is not None:
            first = number if op == "sext" else number & high
            exact = "true" if low <= first + reach <= high else "false"
        else:
            origin = Origin(line.base, value.type, line.stride, 1, op == "sext")
            exact = self.stays_on_line(origin)
            if line.exact == "true":
                return Affine(self.cast(op, base, type).ir, line.stride, exact, origin)
        return Affine(self.cast(op, base, type).ir, line.stride, self.both(exact, line.exact))

    def bitcast(self, value: Value, type: str) -> Value:
        """The same bits as another type of the same width."""
        if value.type == type:
            return value
        number = value.integer
        if number is not None and value.type != "i1":
            return constant(type, number)
        return self.cast("bitcast", value, type)

    def extend(self, value: Value, type: str, *, is_signed: bool) -> Value:
        """The integer converted to ``type``: truncated, or extended by sign or with zeros."""
        if BITS[type] < BITS[value.type]:
            return self.cast("trunc", value, type)
        return self.cast("sext" if is_signed else "zext", value, type)

    def freeze(self, value: Value) -> Value:
        """A value that is not poison (needed before a branch or a division)."""
        if value.is_constant:
            return value
        return Value(self.emit(f"freeze {self.typed(value)}"), value.type, value.vector, value.affine)

    def intrinsic(self, name: str, *arguments: Value | str, type: str | None = None, flags: str = "") -> Value:
        """Call ``llvm.<name>``, overloaded on the lane types; string arguments are immediates (``i1 false``).

        ``type`` is the result's lane type when it is not that of the first argument; the intrinsic is then
        overloaded on the result and the argument (``fptosi.sat``), or on the argument alone when the result
        is an i1.
        """
        values = self.align_shapes(*(a for a in arguments if isinstance(a, Value)))
        result = type or values[0].type
        overloads = [values[0].type] if type in (None, "i1", values[0].type) else [type, values[0].type]
        suffix = "".join("." + self._overload(t or "", values[0].vector) for t in overloads)
        value = self._call(f"llvm.{name}{suffix}", result, arguments, values, flags)
        if name == "bitreverse" and values[0].pattern is not None:
            return replace(value, pattern=patterns.reversed_bits(self, values[0]))
        return value

    def _overload(self, type: str, vector: bool) -> str:
        return (f"v{self.width}" if vector else "") + self.overload(type)

    def overload(self, type: str) -> str:
        """How names of intrinsics spell a type."""
        return _OVERLOAD.get(type, type)

    def _call(
        self,
        name: str,
        result: str,
        arguments: Sequence[Value | str],
        values: Sequence[Value],
        flags: str = "",
    ) -> Value:
        vector = bool(values) and values[0].vector
        rest = iter(values)
        texts = [self.typed(next(rest)) if isinstance(a, Value) else a for a in arguments]
        parameters = ", ".join(
            self.type_of(values[0]).replace(values[0].type, a.type) if isinstance(a, Value) else a.split()[0]
            for a in arguments
        )
        returned = self.vector_type(result) if vector else result
        self.declarations[f"declare {returned} @{name}({parameters})"] = None
        return Value(self.emit(f"call {flags}{returned} @{name}({', '.join(texts)})"), result, vector)

    def reduce(self, op: str, value: Value) -> Value:
        """``llvm.vector.reduce.<op>`` over the lanes, as a uniform value (the value itself for one lane)."""
        if not value.vector:
            return value
        name = f"llvm.vector.reduce.{op}.v{self.width}{_OVERLOAD.get(value.type, value.type)}"
        self.declarations[f"declare {value.type} @{name}({self.type_of(value)})"] = None
        return Value(self.emit(f"call {value.type} @{name}({self.typed(value)})"), value.type)

    def helper(self, name: str, result: str, *arguments: Value) -> Value:
        """Call the native function ``name`` for each lane (once in all when every argument is uniform)."""
        parameters = ", ".join(a.type for a in arguments)
        self.declarations[f"declare {result} @{name}({parameters})"] = None

        def call(lanes: Sequence[Value]) -> Value:
            return Value(self.emit(f"call {result} @{name}({', '.join(map(self.typed, lanes))})"), result)

        if not any(a.vector for a in arguments):
            return call(arguments)
        return self.from_lanes([call([self.lane(a, index) for a in arguments]) for index in range(self.width)])

    def function(
        self,
        name: str,
        result: str,
        arguments: Sequence[Value],
        body: Callable[[Builder, list[Value]], Value],
        *,
        attributes: str = "noinline nounwind willreturn memory(none)",
        vector: bool | None = None,
        inlined: int = 0,
    ) -> Value:
        """Call an internal function of the module, which ``body`` defines at its first use.

        There is one version for uniform arguments and one for varying ones; ``vector`` forces either. The body
        begins in the block ``entry``. As many calls as ``inlined`` become the body itself, so that the vectors of the
        caller stay in registers, and further ones are calls, so that a long kernel does not become much longer.
        """
        self._calls[name] = self._calls.get(name, 0) + 1
        if self._calls[name] <= inlined:
            name, attributes = f"{name}.inlined", attributes.replace("noinline", "alwaysinline")
        if vector is None:
            vector = any(a.vector for a in arguments)
        vector = vector and self.width > 1
        if vector:
            arguments = [self.splat(a) for a in arguments]
        full = f"cupola.{name}" + (f".v{self.width}" if vector else "")
        returned = self.vector_type(result) if vector else result
        if full not in self.functions:
            self.functions[full] = ""  # so that it is not begun twice
            inner = Builder(self.width if vector else 1, declarations=self.declarations, functions=self.functions)
            inner.canonical_nans = self.canonical_nans
            parameters = [Value(f"%a{i}", a.type, vector) for i, a in enumerate(arguments)]
            value = body(inner, parameters)
            if vector:
                value = inner.splat(value)
            typed = ", ".join(map(inner.typed, parameters))
            text = [f"define internal {returned} @{full}({typed}) {attributes} {{"]
            text += ["entry:", *inner.allocas, *inner.lines, f"  ret {inner.typed(value)}", "}"]
            self.functions[full] = "\n".join(text)
        texts = ", ".join(map(self.typed, arguments))
        return Value(self.emit(f"call {returned} @{full}({texts})"), result, vector)

    def function_of_many(
        self,
        name: str,
        results: Sequence[str],
        arguments: Sequence[Value],
        body: Callable[[Builder, list[Value]], Sequence[Value]],
        *,
        attributes: str = "noinline nounwind willreturn memory(none)",
    ) -> list[Value]:
        """:meth:`function` with several results, all of its arguments and results being vectors."""
        arguments = [self.splat(a) for a in arguments]
        full = f"cupola.{name}.v{self.width}"
        returned = "{ " + ", ".join(map(self.vector_type, results)) + " }"
        if full not in self.functions:
            self.functions[full] = ""
            inner = Builder(self.width, declarations=self.declarations, functions=self.functions)
            inner.canonical_nans = self.canonical_nans
            parameters = [Value(f"%a{i}", a.type, True) for i, a in enumerate(arguments)]
            values = [inner.splat(value) for value in body(inner, parameters)]
            record = "poison"
            for index, value in enumerate(values):
                record = inner.emit(f"insertvalue {returned} {record}, {inner.typed(value)}, {index}")
            text = [f"define internal {returned} @{full}({', '.join(map(inner.typed, parameters))}) {attributes} {{"]
            text += ["entry:", *inner.allocas, *inner.lines, f"  ret {returned} {record}", "}"]
            self.functions[full] = "\n".join(text)
        record = self.emit(f"call {returned} @{full}({', '.join(map(self.typed, arguments))})")
        return [
            Value(self.emit(f"extractvalue {returned} {record}, {index}"), type, True)
            for index, type in enumerate(results)
        ]

    # Memory

    def gather(self, type: str, pointers: str, *, align: int) -> Value:
        """Load from the place of each lane; ``pointers`` is a vector of valid ones, also for lanes that do not run."""
        vector, places, lanes = self.vector_type(type), self.vector_type("ptr"), self.vector_type("i1")
        name = f"llvm.masked.gather.{self._overload(type, True)}.v{self.width}p0"
        self.declarations[f"declare {vector} @{name}({places}, i32 immarg, {lanes}, {vector})"] = None
        everyone = f"{lanes} splat (i1 true)"
        text = f"call {vector} @{name}({places} {pointers}, i32 {align}, {everyone}, {vector} poison)"
        return Value(self.emit(text), type, True)

    def scatter(self, value: Value, pointers: str, lanes: Value, *, align: int) -> None:
        """Store to the places of the lanes in an i1 mask; the highest one's value stays where there are several."""
        vector, places = self.vector_type(value.type), self.vector_type("ptr")
        name = f"llvm.masked.scatter.{self._overload(value.type, True)}.v{self.width}p0"
        self.declarations[f"declare void @{name}({vector}, {places}, i32 immarg, {self.vector_type('i1')})"] = None
        operands = f"{self.typed(self.splat(value))}, {places} {pointers}, i32 {align}, {self.typed(self.splat(lanes))}"
        self.line(f"call void @{name}({operands})")

    def store_by_mask(self, value: Value, pointer: str, lanes: Value, *, align: int) -> None:
        """Store the lanes in an i1 mask of a row."""
        vector = self.vector_type(value.type)
        name = f"llvm.masked.store.{self._overload(value.type, True)}.p0"
        self.declarations[f"declare void @{name}({vector}, ptr, i32 immarg, {self.vector_type('i1')})"] = None
        self.line(f"call void @{name}({self.typed(value)}, ptr {pointer}, i32 {align}, {self.typed(lanes)})")

    # Masks

    def ballot(self, predicate: Value) -> Value:
        """The predicate of all lanes as a uniform i32 mask (bit i: lane i); inactive lanes included."""
        if not predicate.vector:
            lanes = constant("i32", (1 << self.width) - 1)
            return self.select(predicate, lanes, constant("i32", 0))
        bits = Value(self.emit(f"bitcast {self.typed(predicate)} to i{self.width}"), f"i{self.width}")
        return Value(self.emit(f"zext i{self.width} {bits.ir} to i32"), "i32") if self.width < 32 else bits

    def active_mask(self) -> Value:
        """The executing lanes as a uniform i32 mask."""
        return self.ballot(self.active)

    def spread(self, mask: Value) -> Value:
        """The inverse of :meth:`ballot`: an i1 for each lane out of a uniform i32 mask."""
        if self.width == 1:
            return self.cast("trunc", mask, "i1")
        if self.width < 32:
            mask = Value(self.emit(f"trunc i32 {mask.ir} to i{self.width}"), f"i{self.width}")
        return Value(self.emit(f"bitcast i{self.width} {mask.ir} to {self.vector_type('i1')}"), "i1", True)
