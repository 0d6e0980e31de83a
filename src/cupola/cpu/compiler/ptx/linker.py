"""Several PTX modules to one (PTX ISA 5.4.1 and 11.6, "Linking Directives").

Linking is done on the words of the text, so that whatever the parser does not keep survives. Each module is taken
apart into items: a function, a variable, a declaration, an alias. A name with ``.visible``, ``.weak``, ``.common`` or
``.extern`` means the same in all modules, and so do the names of kernels. Of several definitions of a name one is
kept: a strong one, or else the largest common one, or else the first weak one. Other names belong to their module,
and are changed if two modules use the same; so are the labels of the strings with the names of functions for
``.loc``. The source files are numbered again, so that instructions keep their lines. Sections for debuggers are kept
where one module has such; those of several would name labels of functions that are in other modules, too, and are left
out, except for those strings.

Everything that is wrong is found before an error is raised, which names symbols and inputs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import field

from cupola.cpu.compiler.ptx import ast
from cupola.cpu.compiler.ptx.cursor import is_name
from cupola.cpu.compiler.ptx.errors import PtxError
from cupola.cpu.compiler.ptx.lexer import Tokens
from cupola.cpu.compiler.ptx.parser import parse
from cupola.cpu.compiler.records import dataclass

_LINKAGES = frozenset([".visible", ".extern", ".weak", ".common"])
_BRACKETS = {"(": ")", "[": "]", "{": "}"}
_IDENTIFIER = re.compile(r"[A-Za-z_$%][\w$]*")
_TARGET = re.compile(r"(?:sm|compute)_(\d+)([af]?)$")
_CONSTANT_BYTES = 65536


class LinkError(PtxError):
    """Modules do not fit together; a line for each thing that is wrong."""


@dataclass(frozen=True, slots=True)
class Header:
    """What a module says of itself: ``.version``, ``.target`` and ``.address_size``."""

    version: tuple[int, int]
    target: str
    others: tuple[str, ...]
    address_size: int


@dataclass(eq=False, slots=True)
class _Item:
    """A declaration or definition of one name: the words from ``first`` to before ``last``, without its linkage."""

    name: str
    kind: str  # "function", "entry", "variable" or "alias"
    linkage: str | None
    defines: bool
    first: int
    last: int
    prefix: tuple[int, int] | None = None  # the words that several variables of a statement share
    body: int = 0  # the word of the opening brace


@dataclass(slots=True)
class _Input:
    name: str
    tokens: Tokens
    module: ast.Module
    header: Header
    items: list[_Item] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)  # by number: the rest of the directive
    strings: list[tuple[int, int]] = field(default_factory=list)  # sections .debug_str
    labels: list[str] = field(default_factory=list)  # and what they define
    tables: list[tuple[int, int]] = field(default_factory=list)  # other sections for debuggers
    definitions: dict[str, _Item] = field(default_factory=dict)
    linkages: dict[str, str | None] = field(default_factory=dict)
    renames: dict[str, str] = field(default_factory=dict)
    renumbers: dict[str, str] = field(default_factory=dict)


def merge(
    modules: Sequence[tuple[str, str]],
    *,
    provided: Collection[str] = (),
    architecture: int | None = None,
    keeper: str = "",
) -> str:
    """Link PTX modules.

    Parameters
    ----------
    modules
        Name and text of each input.
    provided
        External functions that need no definition.
    architecture
        The number of the GPU to link for, 90 for sm_90; the highest of the inputs' by default.
    keeper
        The name of a kernel that exists for other inputs to find the functions that it names: these become visible,
        and the kernel is left out.

    Raises
    ------
    LinkError
        When names have no or several definitions, or declarations or modules contradict each other.
    PtxSyntaxError
        When an input is no PTX.
    """
    inputs = [_read(name, text) for name, text in modules]
    for source in inputs:
        if keeper in source.definitions:
            _take_out(source, keeper)
    return _Linker(inputs, provided, architecture).link()


def undefined_functions(texts: Iterable[str]) -> list[str]:
    """The functions that modules use and none of them defines."""
    inputs = [_read("", text) for text in texts]
    defined = {name for source in inputs for name in source.definitions if source.linkages[name]}
    wanted: dict[str, None] = {}
    for source in inputs:
        used = _used_names(source)
        names = [item.name for item in source.items if item.kind == "function" and item.linkage]
        wanted |= dict.fromkeys(name for name in names if name in used and name not in defined)
    return list(wanted)


# ---- taking modules apart -------------------------------------------------------------------------------------------


def _read(name: str, text: str) -> _Input:
    text = text.partition("\0")[0]
    module = parse(text)  # so that from here on the text is known to be well-formed
    tokens = Tokens(text)
    words = tokens.words
    others: list[str] = []
    index = words.index(".target") + 2
    while words[index] == ",":
        others.append(words[index + 1])
        index += 2
    if words[index] == ".address_size":
        index += 2
    result = _Input(name, tokens, module, Header(module.version, module.target, tuple(others), module.address_size))
    while words[index]:
        index = _read_item(result, index)
    declared = {item.name: item.linkage for item in result.items if item.linkage is not None}
    for item in result.items:
        linkage = declared.get(item.name) if item.kind == "alias" else item.linkage
        if item.defines:
            result.definitions[item.name] = item
            result.linkages[item.name] = linkage
        else:
            result.linkages.setdefault(item.name, linkage)
    return result


def _read_item(result: _Input, index: int) -> int:
    """Read the statement of the module that begins at a word; returns the next one's."""
    words = result.tokens.words
    word = words[index]
    if word == ";":
        return index + 1
    if word == ".pragma":
        return words.index(";", index) + 1
    if word == ".file":
        last = index + 3
        while words[last] == ",":
            last += 2
        result.files[words[index + 1]] = result.tokens.text[
            result.tokens.start(index + 2) : result.tokens.end(last - 1)
        ]
        return last
    if word == ".section":
        last = _end_of_group(words, index + 2)
        if words[index + 1] == ".debug_str":
            result.strings.append((index, last))
            result.labels += [words[at] for at in range(index, last) if words[at + 1] == ":"]
        elif words[index + 1].startswith(".debug_"):
            result.tables.append((index, last))
        return last
    if word == ".alias":
        result.items.append(_Item(words[index + 1], "alias", None, True, index, index + 5))
        return index + 5
    linkage: str | None = None
    while words[index] in _LINKAGES:
        linkage = words[index][1:]
        index += 1
    if words[index] in (".func", ".entry"):
        return _read_function(result, index, linkage)
    return _read_variables(result, index, linkage)


def _take_out(source: _Input, kernel: str) -> None:
    entry = source.definitions.pop(kernel)
    del source.linkages[kernel]
    names = set(source.tokens.words[entry.body : entry.last])
    source.items = [item for item in source.items if item.name != kernel]
    for item in source.items:
        if item.kind == "function" and item.linkage is None and item.name in names:
            item.linkage = source.linkages[item.name] = "visible"


def _end_of_group(words: list[str], index: int) -> int:
    """Behind the bracket that closes the one at ``index``; the parser has counted brackets of its kind."""
    opening = words[index]
    closing = _BRACKETS.get(opening, opening)
    depth = 0
    while True:
        if not words[index]:
            raise LinkError(f"{opening!r} has no {closing!r}")
        depth += (words[index] == opening) - (words[index] == closing)
        index += 1
        if not depth:
            return index


def _read_function(result: _Input, index: int, linkage: str | None) -> int:
    words = result.tokens.words
    first, kind = index, "entry" if words[index] == ".entry" else "function"
    index += 1
    while words[index] == ".attribute":
        index = _end_of_group(words, index + 1)
    if words[index] == "(":
        index = _end_of_group(words, index)
    name = words[index]
    while words[index] not in ("{", ";"):
        index = words.index(";", index) + 1 if words[index] == ".pragma" else index + 1
    if words[index] == ";":
        result.items.append(_Item(name, kind, linkage, False, first, index + 1))
        return index + 1
    last = _end_of_group(words, index)
    result.items.append(_Item(name, kind, linkage, True, first, last, body=index))
    return last


def _read_variables(result: _Input, index: int, linkage: str | None) -> int:
    """``.global .align 4 .u32 a = 1, b[2] = {1, 2};`` is an item for each name."""
    words = result.tokens.words
    first = index
    while not is_name(words[index]):
        index = _end_of_group(words, index) if words[index] == "(" else index + 1
    prefix = (first, index)
    while True:
        start = index
        while words[index] not in (",", ";"):
            index = _end_of_group(words, index) if words[index] in _BRACKETS else index + 1
        item = _Item(words[start], "variable", linkage, linkage != "extern", start, index, prefix)
        result.items.append(item)
        index += 1
        if words[index - 1] == ";":
            return index


# ---- putting them together ------------------------------------------------------------------------------------------


class _Linker:
    def __init__(self, inputs: list[_Input], provided: Collection[str], architecture: int | None) -> None:
        self.inputs = inputs
        self.provided = provided
        self.architecture = architecture
        self.problems: list[str] = []
        self.owners: dict[str, _Input] = {}  # whose definition of a name is kept
        self.files: dict[str, str] = {}  # numbers by name
        self.wanted: set[str] = set()  # names that other modules than their owner use

    def link(self) -> str:
        head = self._head()
        self._choose_definitions()
        self._check_declarations()
        self._rename()
        self._number_files()
        self._check_constants()
        if self.problems:
            raise LinkError("\n".join(self.problems))
        parts = [f".file\t{number} {name}" for name, number in self.files.items()]
        parts += self._declarations()
        kept = [(source, item) for source in self.inputs for item in source.items if self._is_kept(source, item)]
        parts += [self._render(source, item) for source, item in kept if not item.defines]
        parts += self._variables([pair for pair in kept if pair[1].defines and pair[1].kind == "variable"])
        parts += [self._render(source, item) for source, item in kept if item.defines and item.kind != "variable"]
        for source in self.inputs:
            parts += [self._text(source, first, last) for first, last in source.strings]
        described = [source for source in self.inputs if source.tables]
        if len(described) == 1:
            parts += [self._text(described[0], first, last) for first, last in described[0].tables]
        return head + "\n\n".join(parts) + "\n"

    # -- modules --

    def _head(self) -> str:
        sizes = {source.header.address_size: source.name for source in self.inputs}
        if len(sizes) > 1:
            described = ", ".join(f"'{name}' of {size} bits" for size, name in sorted(sizes.items()))
            self.problems.append(f"addresses have different sizes: {described}")
        others: dict[str, str] = {}
        for source in self.inputs:
            others |= dict.fromkeys(source.header.others, source.name)
        if len(modes := sorted(other for other in others if other.startswith("texmode_"))) > 1:
            self.problems.append(
                f"textures have different modes: '{others[modes[0]]}' has {modes[0]}, '{others[modes[1]]}' {modes[1]}"
            )
        version = max(source.header.version for source in self.inputs)
        return (
            f"// linked from {', '.join(' '.join(source.name.split()) for source in self.inputs)}\n"
            f".version {version[0]}.{version[1]}\n"
            f".target {', '.join((self._target(), *others))}\n"
            f".address_size {self.inputs[0].header.address_size}\n\n"
        )

    def _target(self) -> str:
        """The highest target. Code for one GPU only (a), or for a family (f), goes with what these GPUs run."""
        rows = [
            (int(match[1]), match[2], source)
            for source in self.inputs
            if (match := _TARGET.match(source.header.target))
        ]
        if not rows:
            return self.inputs[0].header.target
        number = max(self.architecture or 0, *(own for own, _, _ in rows))
        for own, kind, source in rows:
            if self.architecture and own > self.architecture:
                self.problems.append(
                    f"'{source.name}' is for {source.header.target}, the link for sm_{self.architecture}"
                )
            elif (kind == "a" and own != number) or (kind == "f" and own // 10 != number // 10):
                self.problems.append(f"'{source.name}' is for {source.header.target} only, the link for sm_{number}")
        kinds = {kind for own, kind, _ in rows if own == number}
        return f"sm_{number}" + ("a" if "a" in kinds else "f" if "f" in kinds else "")

    # -- names --

    @staticmethod
    def _is_local(source: _Input, name: str) -> bool:
        item = source.definitions.get(name)
        return source.linkages[name] is None and not (item is not None and item.kind == "entry")

    def _rank(self, source: _Input, name: str) -> int:
        """Definitions of a higher rank are preferred; two of the highest contradict each other."""
        return {"weak": 0, "common": 1}.get(source.linkages[name] or "", 2)

    def _choose_definitions(self) -> None:
        defined: dict[str, list[_Input]] = {}
        for source in self.inputs:
            for name in source.definitions:
                if not self._is_local(source, name):
                    defined.setdefault(name, []).append(source)
        for name, sources in defined.items():
            ranks = [self._rank(source, name) for source in sources]
            best = [source for source, rank in zip(sources, ranks, strict=True) if rank == max(ranks)]
            if max(ranks) == 2 and len(best) > 1:
                where = ", ".join(f"'{source.name}'" for source in best)
                self.problems.append(f"multiple definitions of '{name}': in {where}")
            if max(ranks) == 1:
                best.sort(key=lambda source: -self._size(source, name))
            self.owners[name] = best[0]
        for source in self.inputs:
            used: set[str] | None = None
            for name in dict.fromkeys(item.name for item in source.items if not self._is_local(source, item.name)):
                owner = self.owners.get(name)
                if owner is source:
                    continue
                used = used if used is not None else _used_names(source)
                if name not in used:
                    continue
                self.wanted.add(name)
                if owner is None and name not in self.provided and not self._is_dynamic(source, name):
                    hint = (
                        " (a function of CUDA's libdevice: compile with use_libdevice=True, or link it as PTX)"
                        if name.startswith("__nv_")
                        else ""
                    )
                    self.problems.append(f"undefined reference to '{name}' in '{source.name}'{hint}")

    @staticmethod
    def _size(source: _Input, name: str) -> int:
        variable = source.module.variables.get(name)
        return variable.size if variable else 0

    @staticmethod
    def _is_dynamic(source: _Input, name: str) -> bool:
        """Whether a name is an array in the shared memory that launches ask for."""
        variable = source.module.variables.get(name)
        return variable is not None and variable.space == "shared" and not variable.size

    def _check_declarations(self) -> None:
        for source in self.inputs:
            for name in source.linkages:
                owner = self.owners.get(name)
                if owner is None or owner is source or self._is_local(source, name):
                    continue
                problem = _contradiction(source.module, owner.module, name)
                if problem:
                    self.problems.append(f"'{name}' {problem}: in '{source.name}', and in '{owner.name}'")

    def _rename(self) -> None:
        shared = {name for source in self.inputs for name in source.linkages if not self._is_local(source, name)} | set(
            self.provided
        )
        taken = set(shared)
        words = {word for source in self.inputs for word in source.tokens.words}
        for source in self.inputs:
            locals_ = [name for name in source.linkages if self._is_local(source, name)] + source.labels
            for name in dict.fromkeys(locals_):
                if name in taken:
                    number = 2
                    while f"{name}_{number}" in words:
                        number += 1
                    source.renames[name] = f"{name}_{number}"
                    words.add(source.renames[name])
                taken.add(name)

    def _number_files(self) -> None:
        for source in self.inputs:
            for number, rest in source.files.items():
                mine = self.files.setdefault(rest, str(len(self.files) + 1))
                if mine != number:
                    source.renumbers[number] = mine

    def _check_constants(self) -> None:
        total = 0
        for source in self.inputs:
            for item in source.items:
                variable = source.module.variables.get(item.name)
                if variable and variable.space == "const" and item.defines and self._is_kept(source, item):
                    total = -(-total // variable.align) * variable.align + variable.size
        if total > _CONSTANT_BYTES:
            self.problems.append(
                f"the inputs have {total} bytes of constants together; at most {_CONSTANT_BYTES} are allowed"
            )

    # -- text --

    def _is_kept(self, source: _Input, item: _Item) -> bool:
        """Whether an item is written in its place; `_declarations` has come before."""
        if self._is_local(source, item.name):
            return True
        if item.defines:
            return self.owners.get(item.name) is source
        return self.owners.get(item.name) is source and item.kind != "variable" and item.name not in self.wanted

    def _declarations(self) -> Iterator[str]:
        """What several modules use: functions, those of the CPU device, arrays of dynamic shared memory."""
        done: dict[str, tuple[int, str]] = {}
        for source in self.inputs:
            for item in source.items:
                owner = self.owners.get(item.name)
                if self._is_local(source, item.name):
                    continue
                if owner is None and item.kind == "variable" and self._is_dynamic(source, item.name):
                    align = source.module.variables[item.name].align
                    if align > done.get(item.name, (0, ""))[0]:
                        done[item.name] = (align, self._render(source, item))
                elif owner is None and item.name in self.wanted:
                    done.setdefault(item.name, (1, self._render(source, item)))
                elif owner is source and item.kind == "function" and item.name in self.wanted and item.defines:
                    linkage = f".{item.linkage} " if item.linkage else ""
                    done[item.name] = (1, f"{linkage}{self._text(source, item.first, item.body)};")
        return (text for _, text in done.values())

    def _variables(self, kept: list[tuple[_Input, _Item]]) -> list[str]:
        """Variables, each behind those whose addresses it has, as PTX wants it."""
        parts: list[str] = []
        unwritten = {id(item) for _, item in kept}
        entered: set[int] = set()
        stack = kept[::-1]
        while stack:
            source, item = stack[-1]
            if id(item) not in entered:
                entered.add(id(item))
                stack += [pair for pair in self._addressed(source, item) if id(pair[1]) in unwritten - entered]
                continue
            stack.pop()
            if id(item) in unwritten:
                unwritten.remove(id(item))
                parts.append(self._render(source, item))
        return parts

    def _addressed(self, source: _Input, item: _Item) -> Iterator[tuple[_Input, _Item]]:
        """The variables whose addresses are in the initial value of one."""
        for _, _, name, _, _ in source.module.variables[item.name].relocations:
            is_local = name in source.linkages and self._is_local(source, name)
            owner = source if is_local else self.owners.get(name)
            if owner is not None and name in owner.definitions:
                yield owner, owner.definitions[name]

    def _render(self, source: _Input, item: _Item) -> str:
        text = self._text(source, item.first, item.last)
        if item.prefix:
            text = f"{self._text(source, *item.prefix)} {text};"
        return f".{item.linkage} {text}" if item.linkage else text

    def _text(self, source: _Input, first: int, last: int) -> str:
        """The words from ``first`` to before ``last``, with new names and numbers of files."""
        tokens, renames, renumbers = source.tokens, source.renames, source.renumbers
        if not renames and not renumbers:
            return tokens.text[tokens.start(first) : tokens.end(last - 1)]
        pieces: list[str] = []
        at = tokens.start(first)
        words = tokens.words
        for index in range(first, last):
            word = words[index]
            new = renames.get(word)
            if new is None and word[:1] == "[" and len(word) > 1:
                new = _IDENTIFIER.sub(lambda match: renames.get(match[0], match[0]), word, count=1)
            elif word.isdecimal() and words[index - 1] in (".loc", "inlined_at"):
                new = renumbers.get(word)
            if new is not None:
                start = tokens.start(index)
                pieces += (tokens.text[at:start], new)
                at = start + len(word)
        pieces.append(tokens.text[at : tokens.end(last - 1)])
        return "".join(pieces)


def _used_names(source: _Input) -> set[str]:
    """Every name in the bodies, initial values and aliases of a module."""
    names: set[str] = set()
    for item in source.items:
        if item.defines:
            first = item.body if item.kind in ("function", "entry") else item.first + 1
            for word in source.tokens.words[first : item.last]:
                names.add(word.strip("[ \t]").partition("+")[0].rstrip() if len(word) > 1 and word[0] == "[" else word)
    return names


def _contradiction(one: ast.Module, other: ast.Module, name: str) -> str:
    """How the declarations of a name in two modules differ."""
    function, defined = one.functions.get(name), other.functions.get(name)
    variable, value = one.variables.get(name), other.variables.get(name)
    if (function is None) != (defined is None):
        return "is a function in one input and a variable in another"
    if function and defined and _signature(function) != _signature(defined):
        return "has different parameters"
    if variable and value:
        if variable.space != value.space:
            return f"is in different state spaces, .{variable.space} and .{value.space}"
        if (
            variable.size
            and value.size
            and variable.size != value.size
            and "common"
            not in (
                variable.linkage,
                value.linkage,
            )
        ):
            return f"has different sizes, {variable.size} and {value.size} bytes"
    return ""


def _signature(function: ast.Function) -> tuple[list[int], list[int]]:
    return [parameter.size for parameter in function.returns], [parameter.size for parameter in function.parameters]
