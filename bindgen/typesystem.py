"""C types as text (``const CUgraphNode *``, ``char[64]``, ``void (*)(void *)``) and what they stand for in a module."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cached_property

from .ir import Enum, EnumMember, Module, Record, Typedef
from .libraries import LIBRARIES
from .names import Names, snake

# C scalar -> (kind of the conversion, size in bytes)
SCALARS = {
    "char": ("I8", 1),
    "signed char": ("I8", 1),
    "unsigned char": ("U8", 1),
    "short": ("I16", 2),
    "unsigned short": ("U16", 2),
    "int": ("I32", 4),
    "unsigned int": ("U32", 4),
    "long": ("I64", 8),
    "unsigned long": ("U64", 8),
    "long long": ("I64", 8),
    "unsigned long long": ("U64", 8),
    "int8_t": ("I8", 1),
    "uint8_t": ("U8", 1),
    "int16_t": ("I16", 2),
    "uint16_t": ("U16", 2),
    "int32_t": ("I32", 4),
    "uint32_t": ("U32", 4),
    "int64_t": ("I64", 8),
    "uint64_t": ("U64", 8),
    "size_t": ("U64", 8),
    "ssize_t": ("I64", 8),
    "off_t": ("I64", 8),
    "bool": ("U8", 1),
    "float": ("F32", 4),
    "double": ("F64", 8),
}


def declare(ctype: str, name: str) -> str:
    """The C declaration of `name` with type `ctype`."""
    if "(*)" in ctype:
        return ctype.replace("(*)", f"(*{name})")
    if match := re.fullmatch(r"(.*?)\s*((?:\[\d+\])+)", ctype):
        return f"{match[1]} {name}{match[2]}"
    if match := re.fullmatch(r"([\w ]+?) (\(.*\))", ctype):  # a function type
        return f"{match[1]} {name}{match[2]}"
    return f"{ctype}{name}" if ctype.endswith("*") else f"{ctype} {name}"


@dataclass(frozen=True)
class Resolved:
    """What a C type is: ``kind`` is scalar, enum, record, handle, callback, pointer, array or void.

    ``name`` is the Python class for enums, records, handles and callbacks and the conversion for scalars; ``target``
    the type pointed to or repeated; ``count`` the length of an array; ``const`` whether it is const-qualified.
    """

    kind: str
    name: str = ""
    size: int = 0
    target: str = ""
    count: int = 0
    const: bool = False


@dataclass
class Handle:
    """A class for an opaque pointer, a named integer type or a function pointer; ``base`` is its parent class."""

    name: str
    kind: str
    size: int
    base: str = ""
    scalar: str = "U64"
    doc: str = ""


@dataclass
class RecordClass:
    """A Python class for a record; classes of one record form a chain (``T`` derives from ``T_v1``, from ``T_st``)."""

    name: str
    record: Record
    base: str = ""
    doc: str = ""


@dataclass
class EnumClass:
    name: str
    enum: Enum
    doc: str = ""


@dataclass
class Types:
    """Looks types up: which classes a module has and what each C type means to it."""

    module: Module
    handles: dict[str, Handle] = field(default_factory=dict)
    records: dict[str, RecordClass] = field(default_factory=dict)
    enums: dict[str, EnumClass] = field(default_factory=dict)
    enum_tags: dict[str, str] = field(default_factory=dict)  # "enum TAG" -> its class
    aliases: dict[str, str] = field(default_factory=dict)  # a second name of an enum -> its class
    record_aliases: dict[str, str] = field(default_factory=dict)  # the same of a record
    versions: dict[str, int] = field(default_factory=dict)  # record -> its number in the field `version`
    groups: dict[str, EnumClass] = field(default_factory=dict)  # macros that make up an enumeration

    def __post_init__(self) -> None:
        library = LIBRARIES[self.module.library]
        self.names, self.module_overrides = Names(library), library.overrides()
        pending: Record | Enum | None = None
        tags: dict[str, Record | Enum] = {
            f"{declared.kind if isinstance(declared, Record) else 'enum'} {declared.tag}": declared
            for declared in self.module.types
            if not isinstance(declared, Typedef) and declared.tag
        }
        for record in tags.values():
            if isinstance(record, Record):
                self.records[record.tag] = RecordClass(record.tag, record, doc=record.doc)
        for declared in self.module.types:
            if isinstance(declared, Typedef):
                self._add_typedef(declared, pending, tags)
                pending = None
            elif not declared.tag:
                pending = declared
        typedefs = {id(cls.enum): name for name, cls in self.enums.items()}
        for tag, declared in tags.items():
            if isinstance(declared, Enum):
                if id(declared) not in typedefs:
                    self.enums[declared.tag] = EnumClass(declared.tag, declared, declared.doc)
                self.enum_tags[tag] = typedefs.get(id(declared), declared.tag)
        self._add_groups()
        self.aliases |= self.module_overrides.get("aliases", {})
        self.versions |= self.module_overrides.get("versions", {})

    def _add_groups(self) -> None:
        """Macros of one kind are an enumeration in Python: ``[groups]`` has its name and the macros' prefixes.

        ``"A -> B"`` puts B in the prefix's place. A macro belongs to the groups with the longest prefix that fits.
        """
        groups: dict[str, dict[str, str]] = {
            name: {old: new for old, _, new in (prefix.partition(" -> ") for prefix in prefixes)}
            for name, prefixes in self.module_overrides.get("groups", {}).items()
        }
        members: dict[str, dict[str, EnumMember]] = {name: {} for name in groups}
        second = self.module_overrides.get("constants", {})
        self.constants = []
        for constant in self.module.constants:
            fits = {name: [p for p in prefixes if constant.name.startswith(p)] for name, prefixes in groups.items()}
            longest = max((len(prefix) for found in fits.values() for prefix in found), default=0)
            if not longest:
                self.constants.append(constant)
                if constant.name in second:
                    self.constants.append(replace(constant, name=second[constant.name]))
            for name, found in fits.items():
                if longest not in map(len, found):
                    continue
                for prefix in found:
                    rest = constant.name.removeprefix(prefix)
                    python = groups[name][prefix] + (rest if rest.isupper() else snake(rest).upper())
                    members[name].setdefault(python, EnumMember(python, constant.value, constant.doc))
        self.groups = {name: EnumClass(name, Enum("", list(found.values()))) for name, found in members.items()}

    def members(self, name: str) -> list[tuple[str, EnumMember]]:
        """The members of an enumeration under their Python names.

        ``[members]`` says what else goes from their names: a prefix, or ``"A -> B"`` for any part. The longer name is a
        second one then.
        """
        known: dict[str, EnumMember] = {}
        python = self.names.type(name)
        rules = self.module_overrides.get("members", {}).get(python, [])
        for member in (self.enums.get(name) or self.groups[name]).enum.members:
            long = member.name if name in self.groups else self.names.member(member.name, name)
            for rule in rules:
                old, arrow, new = rule.partition(" -> ")
                short = long.replace(old, new, 1) if arrow else long.removeprefix(old)
                if short.isidentifier():
                    known.setdefault(short, member)
            known.setdefault(long, member)
        return list(known.items())

    def _add_typedef(self, typedef: Typedef, pending: Record | Enum | None, tags: dict[str, Record | Enum]) -> None:
        name, target = typedef.name, typedef.type
        declared = pending if target in ("struct", "union", "enum") else tags.get(target)
        doc = typedef.doc or (declared.doc if declared else "")
        if typedef.revision:
            self.versions[name] = typedef.revision
        if typedef.macro and target in self.records:
            self.record_aliases[name] = target
        elif isinstance(declared, Record) and self.names.raising:
            if self.records.pop(declared.tag, None) or not declared.tag:
                self.records[name] = RecordClass(name, declared, doc=doc)
                self.record_aliases[f"{declared.kind} {declared.tag}"] = name
            else:
                self.record_aliases[name] = self.record_aliases[f"{declared.kind} {declared.tag}"]
        elif self.names.raising and (target in self.records or target in self.record_aliases):
            self.record_aliases[name] = self.record_aliases.get(target, target)
        elif isinstance(declared, Record):
            if name == declared.tag:
                return
            self.records[name] = RecordClass(name, declared, base=declared.tag, doc=doc)
        elif isinstance(declared, Enum):
            self.enums[name] = EnumClass(name, declared, doc=doc)
        elif target in self.records:
            base = self.records[target]
            self.records[name] = RecordClass(name, base.record, base=target, doc=typedef.doc or base.doc)
        elif target in self.enums or target in self.aliases:
            self.aliases[name] = self.aliases.get(target, target)
        elif target in self.handles:
            base_handle = self.handles[target]
            self.handles[name] = Handle(name, base_handle.kind, typedef.size, target, base_handle.scalar, typedef.doc)
        elif "(*)" in target:
            self.handles[name] = Handle(name, "callback", 8, doc=typedef.doc)
        elif target.endswith("*"):
            self.handles[name] = Handle(name, "pointer", 8, doc=typedef.doc)
        elif target in SCALARS:
            scalar, size = SCALARS[target]
            self.handles[name] = Handle(name, "integer", size, scalar=scalar, doc=typedef.doc)

    @cached_property
    def quoted(self) -> dict[str, str]:
        """How texts name each function: that of Python, as code."""
        return {f.name: f"`{self.names.function(f.name)}`" for f in self.module.functions}

    @cached_property
    def _record_tags(self) -> dict[str, str]:
        """The class that stands for ``struct TAG``: the last of its chain without a version, else the tag's own."""
        return {f"{c.record.kind} {c.record.tag}": c.record.tag for c in self.records.values() if c.record.tag}

    def resolve(self, ctype: str) -> Resolved:
        const = False
        ctype = self.module_overrides.get("external", {}).get(ctype, ctype)
        ctype = ctype.removesuffix("const") if ctype.endswith("*const") else ctype
        while ctype.startswith("const "):
            if ctype.endswith("*") or "(*)" in ctype:
                break
            const, ctype = True, ctype.removeprefix("const ")
        if "(*)" in ctype:
            return Resolved("callback", size=8, const=const)
        if match := re.fullmatch(r"(.*?)\s*\[(\d+)\]", ctype):
            inner = self.resolve(match[1])
            return Resolved("array", target=match[1], count=int(match[2]), size=inner.size * int(match[2]), const=const)
        if ctype.endswith("*"):
            return Resolved("pointer", target=ctype[:-1].strip(), size=8, const=const)
        ctype = self.module_overrides.get("external", {}).get(ctype, ctype)
        ctype = self.enum_tags.get(ctype, ctype)
        if ctype.endswith("*"):
            return Resolved("pointer", target=ctype[:-1].strip(), size=8, const=const)
        if ctype in self.handles:
            handle = self.handles[ctype]
            if self.names.raising and handle.kind == "integer":
                return Resolved("scalar", handle.scalar, handle.size, const=const)
            return Resolved("handle", handle.name, handle.size, const=const)
        if ctype in self.enums or ctype in self.aliases:
            return Resolved("enum", self.aliases.get(ctype, ctype), 4, const=const)
        ctype = self.record_aliases.get(ctype, ctype)
        if ctype in self.records or ctype in self._record_tags:
            cls = self.records[self._record_tags.get(ctype, ctype)]
            return Resolved("record", cls.name, cls.record.size, const=const)
        if ctype in SCALARS:
            kind, size = SCALARS[ctype]
            return Resolved("scalar", kind, size, const=const)
        if ctype == "void":
            return Resolved("void", const=const)
        return Resolved("opaque", ctype, const=const)
