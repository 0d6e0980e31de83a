"""Statements of a function: declarations, labels, instructions (PTX ISA 4.3 and 9).

Most operands are one word (see the lexer), and the same few words come again and again. Each scope keeps the
operands it has already made by their text, so that an operand usually costs one look into a dictionary.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import NoReturn

from cupola.cpu.compiler.ptx import ast, grammar
from cupola.cpu.compiler.ptx.cursor import Cursor, is_name
from cupola.cpu.compiler.ptx.declarations import SPACES, parameters, variables
from cupola.cpu.compiler.ptx.grammar import needs
from cupola.cpu.compiler.ptx.locations import Locations
from cupola.cpu.compiler.ptx.names import TYPE_BITS
from cupola.cpu.compiler.ptx.operands import OperandParser
from cupola.cpu.compiler.ptx.scopes import Scopes

_NOTHING = ast.ArgumentList(())
_CACHED = (ast.Register, ast.Special, ast.Immediate, ast.Symbol, ast.Address)
_ADDRESSES = (ast.Address, ast.AddressList)
_WRITABLE = (ast.Register, ast.Vector, ast.Sink, ast.Selector)


class BodyParser:
    """Reads the body of one function into its ``body``, ``registers``, ``variables`` and lists of targets."""

    def __init__(
        self,
        cursor: Cursor,
        function: ast.Function,
        locations: Locations,
        module_names: dict[str, int],
        dialect: Dialect,
    ) -> None:
        self.cursor = cursor
        self.function = function
        self.locations = locations
        self.scopes = Scopes(function.registers)
        self.dialect = dialect
        self.operands = OperandParser(cursor, self.scopes, module_names, dialect.has_register)
        self.statements: list[ast.Statement] = []

    def read(self, end: int) -> None:
        """Read the statements up to the word ``end``, the closing brace."""
        self.locations.start(self.function.name)
        for parameter in [*self.function.parameters, *self.function.returns]:
            if parameter.is_register:
                self.function.registers[parameter.name] = parameter.type
                self.scopes.declare(parameter.name, ast.Register(parameter.name))
            elif parameter.name != "_":
                self.scopes.declare(parameter.name, ast.Symbol(parameter.name))

        cursor = self.cursor
        words = cursor.words
        while cursor.index < end:
            word = words[cursor.index]
            if word[0] == ".":
                self._directive(word)
            elif word == "{":
                cursor.index += 1
                self.scopes.enter()
            elif word == "}":
                cursor.index += 1
                self.scopes.leave()
            elif words[cursor.index + 1] == ":":
                self._label(word)
            elif word == ";":
                cursor.index += 1
            else:
                self._instruction(word)
        self.scopes.settle(self.scopes.current)
        for label, uses in self.scopes.current.pending.items():
            cursor.fail(f"the name {label!r} is not declared", at=uses[0][1])
        self.function.body = self.statements

    # --- declarations ---------------------------------------------------------------------------------------

    def _directive(self, word: str) -> None:
        cursor = self.cursor
        if word == ".loc":
            cursor.index += 1
            self.locations.read_loc(cursor)
        elif word == ".reg":
            cursor.index += 1
            self._registers()
        elif word in SPACES:
            at = cursor.index
            for variable in variables(cursor, None):
                name = variable.name
                self._declare(name, ast.Symbol(self.scopes.current.unique(name)), at)
                variable.name = self.scopes.current.unique(name)
                self.function.variables.append(variable)
                self.operands.elements[variable.name] = max(1, TYPE_BITS[variable.type] // 8)
        elif word == ".pragma":
            self._skip_statement()
        elif word == ".file":
            cursor.index += 1
            self.locations.read_file(cursor)
        else:
            cursor.unexpected("a statement")

    def _skip_statement(self) -> None:
        cursor = self.cursor
        while not cursor.accept(";"):
            if not cursor.take():
                cursor.unexpected("';'")

    def _declare(self, name: str, operand: ast.Operand, at: int) -> None:
        if not self.scopes.declare(name, operand):
            self.cursor.fail(f"{name!r} is already declared in this scope", at=at)

    def _registers(self) -> None:
        """``.reg .b32 %r<10>, %a, b;`` and the vectors ``.reg .v4 .f32 v;``."""
        cursor = self.cursor
        vector = 0
        word = cursor.take()
        if word in (".v2", ".v4"):
            vector = int(word[2:])
            word = cursor.take()
        kind = word[1:]
        if word[:1] != "." or kind not in TYPE_BITS:
            cursor.unexpected("a type such as '.b32'", cursor.index - 1)
        scope = self.scopes.current
        while True:
            at = cursor.index
            name = cursor.name("the name of a register")
            if cursor.accept("<"):
                if vector:
                    cursor.fail("a range of vectors is not supported", at=at)
                self.scopes.declare_range(name, kind, cursor.integer("a number of registers"))
                cursor.expect(">")
            elif vector:
                parts = []
                for part in "xyzw"[:vector]:
                    unique = scope.unique(f"{name}.{part}")
                    self.function.registers[unique] = kind
                    parts.append(ast.Register(unique))
                    self._declare(f"{name}.{part}", parts[-1], at)
                self._declare(name, ast.Vector(tuple(parts)), at)
            else:
                unique = scope.unique(name)
                self._declare(name, ast.Register(unique), at)
                self.function.registers[unique] = kind
            if cursor.accept(";"):
                return
            if not cursor.accept(","):
                cursor.unexpected("',' or ';'")

    # --- labels ---------------------------------------------------------------------------------------------

    def _label(self, word: str) -> None:
        cursor = self.cursor
        at = cursor.index
        if not is_name(word):
            cursor.unexpected("a label")
        if word in self.scopes.current.labels:
            cursor.fail(f"the label {word!r} is defined twice")
        unique = self.scopes.current.labels[word] = self.scopes.current.unique(word)
        cursor.index += 2
        directive = cursor.words[cursor.index]
        if directive == ".branchtargets":
            cursor.index += 1
            self._branch_targets(unique)
        elif directive == ".calltargets":
            cursor.index += 1
            targets = [cursor.name("a function")]
            while cursor.accept(","):
                targets.append(cursor.name("a function"))
            for name in targets:
                if name not in self.operands.module_names:
                    cursor.fail(f"the function {name!r} is not declared", at=at)
            self.function.branch_targets[unique] = tuple(targets)
            cursor.expect(";")
        elif directive == ".callprototype":
            cursor.index += 1
            returns = parameters(cursor) if cursor.words[cursor.index] == "(" else []
            cursor.expect("_")
            arguments = parameters(cursor) if cursor.words[cursor.index] == "(" else []
            self.function.prototypes[unique] = ast.Prototype(returns, arguments)
            self._skip_statement()
        else:
            self.statements.append(ast.Label(unique))

    def _branch_targets(self, unique: str) -> None:
        cursor = self.cursor
        targets: list[str] = []
        while True:
            at = cursor.index
            label = cursor.name("a label")
            self.scopes.current.refer(label, partial(targets.__setitem__, len(targets)), at)
            targets.append(label)
            if cursor.accept(";"):
                break
            if not cursor.accept(","):
                cursor.unexpected("',' or ';'")
        # the list is renamed in place when its scope closes, and frozen when the function is complete
        self.function.branch_targets[unique] = targets  # type: ignore[assignment]

    # --- instructions ---------------------------------------------------------------------------------------

    def _instruction(self, word: str) -> None:
        cursor = self.cursor
        words = cursor.words
        first = index = cursor.index
        guard = None
        if word == "@":
            index += 1
            negated = words[index] == "!"
            cursor.index = index + negated
            guard = ast.Guard(self.operands.register("a predicate"), negated)
            if self.function.registers[guard.register.name] != "pred":
                cursor.unexpected("a predicate", cursor.index - 1)
            index = cursor.index
            word = words[index]
        opcode, modifiers = _split(word)
        if not grammar.forms(opcode):
            if not (is_name(opcode) and opcode[0].isalpha()):
                cursor.unexpected("a statement")
            self._refuse(grammar.problem(opcode, modifiers, 0), index)
        at = index
        index += 1
        operands: tuple[ast.Operand, ...]
        labels = self.operands.labels
        if opcode == "call":
            cursor.index = index
            operands = self._call()
        elif words[index] == ";":
            cursor.index = index + 1
            operands = ()
        else:
            found: list[ast.Operand] = []
            cache = self.scopes.current.cache
            while True:
                text = words[index]
                operand = cache.get(text)
                following = words[index + 1]
                if operand is not None and (following == "," or following == ";"):
                    index += 2
                else:
                    cursor.index = index
                    operand = self.operands.read()
                    if cursor.index == index + 1 and isinstance(operand, _CACHED):
                        cache[text] = operand
                    index = cursor.index + 1
                    following = words[index - 1]
                found.append(operand)
                if following == ";":
                    break
                if following != ",":
                    cursor.unexpected("',' or ';'", index - 1)
            cursor.index = index
            operands = tuple(found)
        self._check(opcode, modifiers, operands, at)

        tokens = cursor.tokens
        text = tokens.text[tokens.start(first) : tokens.end(cursor.index - 1)]
        instruction = ast.Instruction(
            opcode, modifiers, operands, guard, self.locations.at(tokens.line(first)), " ".join(text.split())
        )
        self.statements.append(instruction)
        if labels:
            for label, place in labels:
                self.scopes.current.refer(label, partial(_rename_label, instruction, label), place)
            labels.clear()

    def _check(self, opcode: str, modifiers: tuple[str, ...], operands: tuple[ast.Operand, ...], at: int) -> None:
        """Refuse what the instruction set does not have, or not yet in this version and for this target."""
        shape = (opcode, modifiers, *map(type, operands))
        dialect = self.dialect
        if shape in dialect.fitting:
            return
        form = grammar.form_of(opcode, modifiers, len(operands))
        if form is None:
            self._refuse(grammar.problem(opcode, modifiers, len(operands)), at)
        if opcode == "call":
            return
        for kind, operand in zip(form.operands, operands, strict=False):
            if kind.address != isinstance(operand, _ADDRESSES):
                name = ".".join((opcode, *modifiers))
                what = "an address in brackets" if kind.address else "a value"
                self._refuse(f"operand {kind.name!r} of {name!r} is of the wrong kind", at, what)
            if kind.written and not isinstance(operand, _WRITABLE):
                pair = isinstance(operand, ast.Pair) and "|" in kind.name
                if not pair:
                    name = ".".join((opcode, *modifiers))
                    self._refuse(f"operand {kind.name!r} of {name!r} is of the wrong kind", at, "a register")
            vector = operand.first if isinstance(operand, ast.Pair) else operand
            if vector is not operand and isinstance(vector, ast.Vector) and not {"v2", "v4"} & set(modifiers):
                self._refuse(
                    f"operand {kind.name!r} of {'.'.join((opcode, *modifiers))!r} is not a vector", at, "a register"
                )
            if kind.written and isinstance(vector, ast.Vector):
                for item in vector.items:
                    if not isinstance(item, ast.Register | ast.Sink):
                        self._refuse("a destination holds a constant", at, "a register")
        if unmet := needs.unmet(opcode, modifiers, len(operands), dialect.version, dialect.target):
            name = ".".join((opcode, *modifiers))
            self._refuse(f"{name!r} {unmet}, and this module is {dialect}", at)
        if not _WITH_PARTS.intersection(shape):
            dialect.fitting.add(shape)

    def _refuse(self, message: str, at: int, expected: str = "") -> NoReturn:
        """Fail for an instruction, with its place in the CUDA source."""
        location = self.locations.at(self.cursor.tokens.line(at))
        source = f"{location.file}:{location.line}" if location.file else ""
        self.cursor.fail(message, expected, at, source)

    def _call(self) -> tuple[ast.Operand, ...]:
        """``call (returns), function, (arguments), prototype;`` in the one shape of `ast.Instruction`."""
        cursor = self.cursor
        returns = arguments = _NOTHING
        if cursor.accept("("):
            returns = self._arguments()
            cursor.expect(",")
        at = cursor.index
        target = self.operands.resolve(cursor.name("a function"), at)
        if not isinstance(target, ast.Symbol | ast.Register):
            cursor.unexpected("a function", at)
        if cursor.accept(",") and cursor.accept("("):
            arguments = self._arguments()
            following = cursor.accept(",")
        else:
            following = cursor.words[cursor.index - 1] == ","
        operands: tuple[ast.Operand, ...] = (returns, target, arguments)
        if following:
            at = cursor.index
            label = cursor.name("a prototype or list of targets")
            if label in self.operands.module_names:
                operands += (ast.Symbol(label),)
            else:
                self.operands.labels.append((label, at))
                operands += (ast.LabelRef(label),)
        cursor.expect(";")
        return operands

    def _arguments(self) -> ast.ArgumentList:
        cursor = self.cursor
        items: list[ast.Operand] = []
        if cursor.accept(")"):
            return _NOTHING
        while True:
            items.append(self.operands.read())
            if cursor.accept(")"):
                return ast.ArgumentList(tuple(items))
            if not cursor.accept(","):
                cursor.unexpected("',' or ')'")


class Dialect:
    """The PTX of a version, for a target.

    Attributes
    ----------
    fitting : set
        Opcode, modifiers and classes of operands of instructions that it is known to have.
    """

    def __init__(self, version: needs.Version, target: str) -> None:
        self.version = version
        self.name = target
        self.target = needs.Target.of(target)
        self.fitting: set[tuple[object, ...]] = set()

    def __str__(self) -> str:
        return f"PTX {self.version[0]}.{self.version[1]} for {self.name}"

    def has_register(self, name: str) -> str:
        """What is wrong with a special register; nothing, if it has it."""
        if unmet := needs.unmet(name, (), 0, self.version, self.target):
            return f"the register {name!r} {unmet}, and this module is {self}"
        return ""


@lru_cache(maxsize=64)
def dialect(version: needs.Version, target: str) -> Dialect:
    """The one for all modules of a version and for a target."""
    return Dialect(version, target)


_WITH_PARTS = frozenset([ast.Vector, ast.Pair])
"""Operands of which more is looked at than the class."""

_SPLIT: dict[str, tuple[str, tuple[str, ...]]] = {}


def _split(word: str) -> tuple[str, tuple[str, ...]]:
    """``"add.s32"`` as opcode and modifiers."""
    parts = _SPLIT.get(word)
    if parts is None:
        opcode, *modifiers = word.split(".")
        parts = opcode, tuple(modifiers)
        if grammar.matching(*parts):  # only what exists is kept, whatever else is read
            _SPLIT[word] = parts
    return parts


def _rename_label(instruction: ast.Instruction, label: str, unique: str) -> None:
    if label != unique:
        instruction.operands = tuple(
            ast.LabelRef(unique) if operand == ast.LabelRef(label) else operand for operand in instruction.operands
        )
