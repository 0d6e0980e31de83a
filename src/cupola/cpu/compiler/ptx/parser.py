"""PTX text to syntax tree (PTX ISA chapters 4, 5 and 11): the statements of a module."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from cupola.cpu.compiler.ptx import ast
from cupola.cpu.compiler.ptx.body import BodyParser, dialect
from cupola.cpu.compiler.ptx.cursor import Cursor
from cupola.cpu.compiler.ptx.declarations import SPACES, parameters, variables
from cupola.cpu.compiler.ptx.errors import PtxSyntaxError
from cupola.cpu.compiler.ptx.grammar import needs
from cupola.cpu.compiler.ptx.lexer import Tokens, kernel_bodies
from cupola.cpu.compiler.ptx.locations import Locations
from cupola.cpu.compiler.ptx.names import TYPE_BITS

_LINKAGES = frozenset([".visible", ".extern", ".weak", ".common"])
_PERFORMANCE = frozenset(
    [".maxnreg", ".maxntid", ".reqntid", ".minnctapersm", ".maxnctapersm", ".maxclusterrank"]
    + [".explicitcluster", ".reqnctapercluster", ".blocksareclusters", ".noreturn", ".unified"]
    + [".abi_preserve", ".abi_preserve_control", ".language"]
)


def parse(text: str, *, lazily: bool = False) -> ast.Module:
    """Parse a PTX module.

    Parameters
    ----------
    text : str
        The whole text, as NVRTC or a file gives it; a NUL ends it.
    lazily : bool
        Whether the bodies of kernels stay empty until `ast.Module.read_body` is called. What is wrong in one is only
        found then.

    Returns
    -------
    ast.Module
        Functions and variables in the order of the text.

    Raises
    ------
    PtxSyntaxError
        If the text is no PTX, or has an instruction that the grammar does not know. Nothing else is raised.
    """
    text = text.partition("\0")[0]
    if lazily:
        parser = _ModuleParser(text, kernel_bodies(text))
        with suppress(PtxSyntaxError):  # which may be for what was skipped in vain
            module = parser.read()
            if parser.all_skipped_are_bodies():
                return module
    return _ModuleParser(text).read()


class _ModuleParser:
    def __init__(self, text: str, skipped: Sequence[tuple[int, int]] = ()) -> None:
        ends = [0, *(place for body in skipped for place in body), len(text)]
        self.cursor = Cursor(Tokens(text, list(zip(ends[::2], ends[1::2], strict=True))))
        self.skipped = dict(skipped)  # the ends of bodies by their beginnings
        self.locations = Locations()
        self.module = ast.Module((0, 0), "", 64, self.locations.files, {}, {})
        self.names_samplers = False  # the independent mode of textures
        self.bodies: list[tuple[ast.Function, int, int]] = []  # function, first word, closing brace
        self.aliases: list[tuple[str, str, int]] = []

    def all_skipped_are_bodies(self) -> bool:
        """Whether the parser came to functions at all places that were taken for their bodies."""
        return len(self.module.unread) == len(self.skipped)

    def read(self) -> ast.Module:
        cursor = self.cursor
        self._header()
        while word := cursor.words[cursor.index]:
            if word == ".file":
                cursor.index += 1
                self.locations.read_file(cursor)
            elif word == ".section":
                cursor.index += 1
                self.locations.read_section(cursor)
            elif word == ".pragma":
                self._skip_statement()
            elif word == ".alias":
                self._alias()
            elif word == ";":
                cursor.index += 1
            else:
                self._definition()
        self._read_bodies()
        return self.module

    def _header(self) -> None:
        """``.version 9.0  .target sm_90, debug  .address_size 64``."""
        cursor = self.cursor
        cursor.expect(".version")
        major, dot, minor = cursor.words[cursor.index].partition(".")
        if not (major.isdecimal() and dot and minor.isdecimal() and len(major) + len(minor) < 8):
            cursor.unexpected("a version such as '9.0'")
        cursor.index += 1
        self.module.version = (int(major), int(minor))
        cursor.expect(".target")
        at = cursor.index
        targets = [cursor.name("a target such as 'sm_90'")]
        while cursor.accept(","):
            targets.append(cursor.name("a target"))
        architectures = [target for target in targets if target.startswith(("sm_", "compute_"))]
        self.module.target = architectures[0] if architectures else targets[0]
        first = needs.first_version(self.module.target)
        if self.module.version < first:
            cursor.fail(
                f"the target {self.module.target!r} needs PTX {first[0]}.{first[1]}, and this module is "
                f"PTX {self.module.version[0]}.{self.module.version[1]}",
                at=at,
            )
        self.names_samplers = "texmode_independent" in targets
        if cursor.accept(".address_size"):
            at = cursor.index
            self.module.address_size = cursor.integer("32 or 64")
            if self.module.address_size not in (32, 64):
                cursor.unexpected("32 or 64", at)

    def _skip_statement(self) -> None:
        cursor = self.cursor
        while not cursor.accept(";"):
            if not cursor.take():
                cursor.unexpected("';'")

    def _alias(self) -> None:
        cursor = self.cursor
        cursor.index += 1
        at = cursor.index
        name = cursor.name("a function")
        cursor.expect(",")
        self.aliases.append((name, cursor.name("a function"), at))
        cursor.expect(";")

    def _definition(self) -> None:
        """A variable or function with its linkage."""
        cursor = self.cursor
        linkage: str | None = None
        while cursor.words[cursor.index] in _LINKAGES:
            linkage = cursor.take()[1:]
        word = cursor.words[cursor.index]
        if word in (".entry", ".func"):
            self._function(linkage)
        elif word in SPACES and word not in (".local", ".param"):
            for variable in variables(cursor, linkage):
                known = self.module.variables.get(variable.name)
                if known is None or known.linkage in ("extern", "weak", "common"):
                    self.module.variables[variable.name] = variable
                elif linkage not in ("extern", "weak", "common"):
                    cursor.fail(f"the variable {variable.name!r} is defined twice", at=cursor.index - 1)
        else:
            cursor.unexpected("a variable, a function or a directive")

    def _function(self, linkage: str | None) -> None:
        cursor = self.cursor
        line = cursor.tokens.line(cursor.index)
        is_entry = cursor.take() == ".entry"
        self._attributes()
        returns = parameters(cursor) if cursor.words[cursor.index] == "(" else []
        at = cursor.index
        name = cursor.name("the name of a function")
        arguments = parameters(cursor) if cursor.words[cursor.index] == "(" else []
        function = ast.Function(
            name, is_entry, arguments, returns, {}, [], None, linkage=linkage, location=ast.Location(line)
        )
        self._performance(function)
        if cursor.accept(";"):
            self.module.functions.setdefault(name, function)
            return
        if cursor.words[cursor.index] != "{":
            cursor.unexpected("the function's body or ';'")
        known = self.module.functions.get(name)
        if known is not None and known.body is not None:
            cursor.fail(f"the function {name!r} is defined twice", at=at)
        function.body = []
        self.module.functions[name] = function
        first = cursor.index + 1
        self._skip_braces()
        self.bodies.append((function, first, cursor.index - 1))

    def _attributes(self) -> None:
        cursor = self.cursor
        while cursor.accept(".attribute"):
            depth = 0
            while True:
                word = cursor.take()
                if not word:
                    cursor.unexpected("')'")
                depth += (word == "(") - (word == ")")
                if depth <= 0:
                    break

    def _performance(self, function: ast.Function) -> None:
        """Directives between the parameters and the body (PTX ISA 11.4)."""
        cursor = self.cursor
        while (word := cursor.words[cursor.index])[:1] == ".":
            if word == ".pragma":
                self._skip_statement()
                continue
            if word not in _PERFORMANCE:
                cursor.unexpected("a performance directive or the function's body")
            cursor.index += 1
            numbers = []
            if cursor.words[cursor.index][:1].isdigit():
                numbers.append(cursor.integer())
                while cursor.accept(","):
                    numbers.append(cursor.integer())
            function.directives[word[1:]] = tuple(numbers)

    def _skip_braces(self) -> None:
        cursor = self.cursor
        words = cursor.words
        index = cursor.index
        depth = 0
        while True:
            word = words[index]
            if word == "{":
                depth += 1
            elif word == "}":
                depth -= 1
                if not depth:
                    break
            elif not word:
                cursor.unexpected("'}'", index)
            index += 1
        cursor.index = index + 1

    def _read_bodies(self) -> None:
        """Bodies come last: file names, debug strings and later functions are known now."""
        module = self.module
        names = {name: 1 for name in module.functions}
        for variable in module.variables.values():
            names[variable.name] = max(1, TYPE_BITS[variable.type] // 8)
        names |= {name: 1 for name, _, _ in self.aliases}
        for function, first, end in self.bodies:
            begin = self.cursor.tokens.end(first - 1)
            if begin in self.skipped:
                place = begin, self.skipped[begin]
                module.unread[function.name] = partial(self._read_skipped, function, place, names)
            else:
                self._read_body(Cursor(self.cursor.tokens, first), function, end, names)
        for name, target, at in self.aliases:
            aliased = module.functions.get(target)
            if aliased is None:
                self.cursor.fail(f"{target!r}, which {name!r} stands for, is not declared", at=at)
            module.functions[name] = aliased

    def _read_body(self, cursor: Cursor, function: ast.Function, end: int, names: dict[str, int]) -> None:
        known = dialect(self.module.version, self.module.target)
        BodyParser(cursor, function, self.locations, names, known).read(end)
        if self.names_samplers:
            _drop_samplers(function)
        function.branch_targets = {name: tuple(items) for name, items in function.branch_targets.items()}

    def _read_skipped(self, function: ast.Function, place: tuple[int, int], names: dict[str, int]) -> None:
        begin, end = place
        tokens = Tokens(self.cursor.tokens.text, [(begin, end + 1)], self.cursor.tokens)  # with the closing brace
        for found in (function.registers, function.variables, function.branch_targets, function.prototypes):
            found.clear()  # of an attempt that failed
        self._read_body(Cursor(tokens), function, tokens.words.index("") - 1, names)


def _drop_samplers(function: ast.Function) -> None:
    """A GPU reads an object in a register with the object's own sampler, whatever other register names one."""
    for statement in function.body or ():
        if isinstance(statement, ast.Instruction) and statement.opcode in ("tex", "tld4"):
            match statement.operands[1]:
                case ast.AddressList((ast.Register() as object, ast.Register(), coordinates)):
                    operands = statement.operands
                    statement.operands = (operands[0], ast.AddressList((object, coordinates)), *operands[2:])
