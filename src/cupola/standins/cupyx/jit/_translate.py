"""Python functions as CUDA C++: statement by statement, with the types that C++ gives."""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

import numpy

from cupola.standins.cupy._kernels import TYPES
from cupola.standins.cupyx.jit._builtins import FUNCTIONS, Builtin, Place, grid, gridsize, shared_memory
from cupola.standins.cupyx.jit._builtins import range as _range

_BINARY = {
    ast.Add: "({0} + {1})", ast.Sub: "({0} - {1})", ast.Mult: "({0} * {1})", ast.Div: "jit_divide({0}, {1})",
    ast.FloorDiv: "jit_floor_divide({0}, {1})", ast.Mod: "jit_remainder({0}, {1})", ast.Pow: "jit_power({0}, {1})",
    ast.LShift: "({0} << {1})", ast.RShift: "({0} >> {1})", ast.BitAnd: "({0} & {1})", ast.BitOr: "({0} | {1})",
    ast.BitXor: "({0} ^ {1})",
}  # fmt: skip
_COMPARED = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
_UNARY = {ast.USub: "-", ast.UAdd: "+", ast.Not: "!", ast.Invert: "~"}


class Unsupported(NotImplementedError):
    """A statement or an expression that is not translated."""


class Translator:
    """The body of a function as CUDA C++.

    Parameters
    ----------
    function : callable
        The function.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        try:
            lines, self.first = inspect.getsourcelines(function)
        except (OSError, TypeError):
            raise ValueError(f"cupyx.jit reads the source of {function.__name__}(), and there is none") from None
        self.file = inspect.getsourcefile(function) or "?"
        tree = ast.parse(textwrap.dedent("".join(lines))).body[0]
        if not isinstance(tree, ast.FunctionDef):
            raise Unsupported("cupyx.jit translates functions that are written with def")
        self.tree = tree
        if tree.args.vararg or tree.args.kwarg or tree.args.kwonlyargs or tree.args.defaults:
            raise self._no(tree, "*args, **kwargs and defaults of parameters")
        self.parameters = [one.arg for one in tree.args.args]
        self.arrays: dict[str, int] = {}
        self.names: set[str] = set(self.parameters)
        self.devices: dict[str, str] = {}  # functions of the device, which are called
        found = inspect.getclosurevars(function)
        self.around = {**vars(builtins), **found.globals, **found.nonlocals}
        self.dynamic = False

    def _no(self, node: ast.AST, what: str) -> Unsupported:
        line = self.first + getattr(node, "lineno", 1) - 1
        return Unsupported(
            f"cupyx.jit does not translate {what} ({self.file}:{line}); cupy.RawKernel takes CUDA C++ as it is"
        )

    # --- whole functions -------------------------------------------------------------------------------------------

    def kernel(self, name: str, types: list[tuple[str, int | None]]) -> str:
        """The kernel for arguments of these types, each with its number of dimensions, or None for numbers."""
        heads = []
        for parameter, (kind, ndim) in zip(self.parameters, types, strict=True):
            heads.append(f"{kind} {parameter}" if ndim is None else f"jit_array<{kind}, {ndim}> {parameter}")
            if ndim is not None:
                self.arrays[parameter] = ndim
        body = self._block(self.tree.body, "    ")
        shared = "    extern __shared__ __align__(16) char jit_dynamic[];\n" if self.dynamic else ""
        head = f'extern "C" __global__ void {name}({", ".join(heads)}) {{\n{shared}'
        return "".join(self.devices.values()) + head + body + "}\n"

    def device(self) -> str:
        """The function of the device, for arguments of any type."""
        letters = ", ".join(f"typename T{k}" for k in range(len(self.parameters)))
        heads = ", ".join(f"T{k} {name}" for k, name in enumerate(self.parameters))
        self.arrays = {}
        body = self._block(self.tree.body, "    ")
        template = f"template <{letters}> " if letters else ""
        made = f"{template}__device__ auto {self.tree.name}({heads}) {{\n{body}}}\n"
        return "".join(self.devices.values()) + made

    # --- statements ------------------------------------------------------------------------------------------------

    def _block(self, body: list[ast.stmt], indent: str) -> str:
        made = []
        for one in body:
            text = self._statement(one, indent)
            if text:
                made.append(f'#line {self.first + one.lineno - 1} "{self.file}"\n{text}')
        return "".join(made)

    def _inner(self, body: list[ast.stmt], indent: str, *names: str) -> str:
        """A block, whose new names end with it."""
        before = set(self.names)
        self.names.update(names)
        made = self._block(body, indent + "    ")
        self.names = before
        return made

    def _statement(self, node: ast.stmt, indent: str) -> str:
        if isinstance(node, ast.Assign):
            if len(node.targets) != 1:
                raise self._no(node, "several targets of an assignment")
            return self._assign(node, node.targets[0], node.value, indent)
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            return self._assign(node, node.target, node.value, indent)
        if isinstance(node, ast.AugAssign):
            place = ast.parse(ast.unparse(node.target), mode="eval").body
            target, value = self._expression(place), self._expression(node.value)
            form = self._form(_BINARY, node.op, node)
            return f"{indent}{target} = {form.format(target, value)};\n"
        if isinstance(node, ast.If):
            text = f"{indent}if ({self._expression(node.test)}) {{\n{self._inner(node.body, indent)}{indent}}}"
            return text + (f" else {{\n{self._inner(node.orelse, indent)}{indent}}}\n" if node.orelse else "\n")
        if isinstance(node, ast.While) and not node.orelse:
            return f"{indent}while ({self._expression(node.test)}) {{\n{self._inner(node.body, indent)}{indent}}}\n"
        if isinstance(node, ast.For) and not node.orelse:
            return self._for(node, indent)
        if isinstance(node, ast.Return):
            return f"{indent}return{' ' + self._expression(node.value) if node.value is not None else ''};\n"
        if isinstance(node, ast.Pass) or isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return ""
        if isinstance(node, (ast.Break, ast.Continue)):
            return f"{indent}{'break' if isinstance(node, ast.Break) else 'continue'};\n"
        if isinstance(node, ast.Expr):
            return f"{indent}{self._expression(node.value)};\n"
        raise self._no(node, f"the statement {type(node).__name__}")

    def _assign(self, node: ast.stmt, target: ast.expr, value: ast.expr, indent: str) -> str:
        if isinstance(target, ast.Tuple):
            if isinstance(value, ast.Call) and self._object(value.func) in (grid, gridsize):
                parts = [self._grid(value, axis) for axis in range(len(target.elts))]
            elif isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
                parts = [self._expression(one) for one in value.elts]
            else:
                raise self._no(node, "the assignment to several names")
            return "".join(self._store(one, text, indent) for one, text in zip(target.elts, parts, strict=True))
        if isinstance(value, ast.Call) and self._object(value.func) is shared_memory:
            return self._shared(node, target, value, indent)
        return self._store(target, self._expression(value), indent)

    def _store(self, target: ast.expr, text: str, indent: str) -> str:
        if isinstance(target, ast.Name) and target.id not in self.names:
            self.names.add(target.id)
            return f"{indent}auto {target.id} = {text};\n"
        return f"{indent}{self._expression(target)} = {text};\n"

    def _shared(self, node: ast.stmt, target: ast.expr, value: ast.Call, indent: str) -> str:
        given = [*value.args, *(one.value for one in value.keywords)]
        if not isinstance(target, ast.Name) or len(given) < 2:
            raise self._no(node, "shared memory without a name, a dtype and a size")
        kind = TYPES[numpy.dtype(self._object(given[0], node)).char]
        size = self._object(given[1], node)
        self.names.add(target.id)
        if size is None:
            self.dynamic = True
            return f"{indent}{kind}* {target.id} = ({kind}*)jit_dynamic;\n"
        if not isinstance(size, int):
            raise self._no(node, "shared memory of a size that is not known when the kernel is compiled")
        return f"{indent}__shared__ {kind} {target.id}[{size}];\n"

    def _for(self, node: ast.For, indent: str) -> str:
        call = node.iter
        known = isinstance(call, ast.Call) and self._object(call.func) in (builtins.range, _range)
        if not known or not isinstance(node.target, ast.Name) or not isinstance(call, ast.Call):
            raise self._no(node, "loops over anything but range()")
        given = [self._expression(one) for one in call.args]
        start, stop, step = ("0", *given, "1") if len(given) == 1 else (*given, "1")[:3]
        unroll = ""
        for keyword in call.keywords:
            value = self._object(keyword.value, node)
            unroll = f"{indent}#pragma unroll{f' {value}' if isinstance(value, int) and value is not True else ''}\n"
        i = node.target.id
        down = step.replace("(", "").lstrip().startswith("-")
        fixed = step.strip("()").lstrip("-").isdigit()
        test = f"{i} {'>' if down else '<'} {stop}" if fixed else f"(({step}) > 0 ? {i} < ({stop}) : {i} > ({stop}))"
        kind = f"decltype(({start}) + ({stop}) + ({step}))"
        if i in self.names:
            head = f"for ({i} = {start}; {test}; {i} += {step})"
        else:
            head = f"for ({kind} {i} = {start}; {test}; {i} += {step})"
        return f"{unroll}{indent}{head} {{\n{self._inner(node.body, indent, i)}{indent}}}\n"

    # --- expressions -------------------------------------------------------------------------------------------------

    def _form(self, table: dict[Any, str], op: ast.AST, node: ast.AST) -> str:
        if type(op) not in table:
            raise self._no(node, f"the operator {type(op).__name__}")
        return table[type(op)]

    def _object(self, node: ast.expr, why: ast.AST | None = None) -> Any:
        """What a name of the program stands for; None if it is not known (or, with `why`, an error)."""
        try:
            if isinstance(node, ast.Constant):
                return node.value
            if isinstance(node, ast.Name):
                return None if node.id in self.names else self.around[node.id]
            if isinstance(node, ast.Attribute):
                return getattr(self._object(node.value), node.attr)
            if why is not None:
                return eval(compile(ast.Expression(node), "<jit>", "eval"), dict(self.around))
        except (KeyError, AttributeError, NameError):
            if why is not None:
                raise self._no(why, ast.unparse(node)) from None
        return None

    def _constant(self, value: Any, node: ast.AST) -> str:
        if isinstance(value, (bool, numpy.bool_)):
            return "true" if value else "false"
        if isinstance(value, (int, numpy.integer)):
            return f"{int(value)}" + ("" if -(1 << 31) < value < 1 << 31 else "ll")
        if isinstance(value, (float, numpy.floating)):
            text = repr(float(value))
            text = {"inf": "(double)__longlong_as_double(0x7ff0000000000000)", "nan": "__longlong_as_double(-1ll)"}.get(
                text.lstrip("-"), text
            )
            return f"(float){text}" if isinstance(value, numpy.float32) else text
        raise self._no(node, f"the constant {value!r}")

    def _expression(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant):
            return self._constant(node.value, node)
        if isinstance(node, ast.Name):
            return node.id if node.id in self.names else self._outside(node)
        if isinstance(node, ast.BinOp):
            form = self._form(_BINARY, node.op, node)
            return form.format(self._expression(node.left), self._expression(node.right))
        if isinstance(node, ast.UnaryOp):
            return f"({self._form(_UNARY, node.op, node)}{self._expression(node.operand)})"
        if isinstance(node, ast.BoolOp):
            return (
                "("
                + (" && " if isinstance(node.op, ast.And) else " || ").join(map(self._expression, node.values))
                + ")"
            )
        if isinstance(node, ast.Compare):
            sides = [self._expression(one) for one in (node.left, *node.comparators)]
            parts = [
                f"{a} {self._form(_COMPARED, op, node)} {b}"
                for a, op, b in zip(sides, node.ops, sides[1:], strict=False)
            ]
            return "(" + " && ".join(parts) + ")"
        if isinstance(node, ast.IfExp):
            return f"({self._expression(node.test)} ? {self._expression(node.body)} : {self._expression(node.orelse)})"
        if isinstance(node, ast.Subscript):
            return self._subscript(node)
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        raise self._no(node, f"the expression {ast.unparse(node)}")

    def _outside(self, node: ast.expr) -> str:
        """A name from around the function: a number, or something of ``cupyx.jit``."""
        found = self._object(node)
        if isinstance(found, Builtin) and found.code and "{" not in found.code and "(" not in found.code:
            return found.code
        if isinstance(found, (bool, int, float, numpy.generic)):
            return self._constant(found, node)
        raise self._no(node, f"{ast.unparse(node)}, which is no number")

    def _attribute(self, node: ast.Attribute) -> str:
        if isinstance(node.value, ast.Name) and node.value.id in self.arrays:
            if node.attr in ("size", "ndim"):
                return f"{node.value.id}.size" if node.attr == "size" else str(self.arrays[node.value.id])
            raise self._no(node, f"{ast.unparse(node)}: size, ndim and shape[k] are known")
        if isinstance(node.value, ast.Name) and node.value.id in self.names:
            raise self._no(node, ast.unparse(node))
        return self._outside(node)

    def _subscript(self, node: ast.Subscript) -> str:
        keys = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if any(isinstance(key, ast.Slice) for key in keys):
            raise self._no(node, "slices")
        at = [self._expression(key) for key in keys]
        of = node.value
        if isinstance(of, ast.Attribute) and of.attr in ("shape", "strides") and isinstance(of.value, ast.Name):
            return f"{of.value.id}.{of.attr}[{at[0]}]"
        if isinstance(of, ast.Name) and of.id in self.arrays:
            ndim = self.arrays[of.id]
            if ndim != len(keys):
                raise self._no(node, f"{len(keys)} indices of an array of {ndim} dimensions")
            return f"{of.id}({', '.join(at)})"
        if len(at) != 1:
            raise self._no(node, ast.unparse(node))
        return f"{self._expression(of)}[{at[0]}]"

    def _grid(self, node: ast.Call, axis: int) -> str:
        x = "xyz"[axis]
        whole = self._object(node.func) is gridsize
        return f"(gridDim.{x} * blockDim.{x})" if whole else f"(blockIdx.{x} * blockDim.{x} + threadIdx.{x})"

    def _call(self, node: ast.Call) -> str:
        found = self._object(node.func)
        if found in (grid, gridsize):
            return self._grid(node, 0)
        if isinstance(found, Builtin) and found.name.startswith("atomic_"):
            array = node.args[0]
            index = node.args[1].elts if isinstance(node.args[1], ast.Tuple) else [node.args[1]]
            place = ast.Subscript(array, ast.Tuple(index) if len(index) > 1 else index[0])
            code = found.code.replace("{0}[{1}]", "{0}")
            return code.format(
                self._expression(ast.copy_location(place, node)), "", *map(self._expression, node.args[2:])
            )
        given = [self._expression(one) for one in node.args]
        if isinstance(found, Builtin):
            given += [self._expression(one.value) for one in node.keywords]
            needed = found.code.count("{") - len(given)
            given += found.defaults[len(found.defaults) - needed :] if needed > 0 else ()
            if found.code and found.code.count("{") == len(given):
                return found.code.format(*given)
            raise self._no(node, ast.unparse(node))
        if node.keywords:
            raise self._no(node, f"keywords of {ast.unparse(node.func)}")
        translated = getattr(found, "_translated", None)
        if translated is not None:
            name = found.__name__
            self.devices.setdefault(name, translated())
            return f"{name}({', '.join(given)})"
        if isinstance(found, type) and issubclass(found, numpy.generic):
            return f"(({TYPES[numpy.dtype(found).char]})({given[0]}))"
        if found is builtins.len and isinstance(node.args[0], ast.Name) and node.args[0].id in self.arrays:
            return f"{given[0]}.shape[0]"
        name = getattr(found, "__name__", "")
        if callable(found) and name in FUNCTIONS and not isinstance(found, Place):
            form = FUNCTIONS[name]
            if len({part[0] for part in form.split("{")[1:]}) == len(given):
                return form.format(*given)
        raise self._no(node, f"the call of {ast.unparse(node.func)}")
