"""The intermediate representation: what the headers of one library declare, as plain data in a diffable JSON file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Parameter:
    """A function's parameter. ``direction`` is ``in``, ``out``, ``inout`` or empty, as the header's comment says."""

    name: str
    type: str
    direction: str = ""


@dataclass
class Function:
    """A function under its public name.

    ``symbol`` is the exported name of its newest form, ``thread_symbol`` that of the variant whose default stream is
    per thread, ``aliases`` are older exported names with the same signature, ``since`` is the CUDA version that
    brought the newest form (12050 is 12.5; 0 when the headers do not say) and ``base`` the name under which
    ``cuGetProcAddress`` knows it.

    ``only`` is the CUDA major that alone has the function, 0 when both have it. ``older`` are the symbols that have
    this signature in the older major where those are others, and ``older_parameters`` are that symbol's parameters
    where no symbol has this signature.
    """

    name: str
    symbol: str
    returns: str
    parameters: list[Parameter]
    thread_symbol: str = ""
    aliases: list[str] = field(default_factory=list)
    base: str = ""
    since: int = 0
    deprecated: bool = False
    only: int = 0
    older: str = ""
    older_parameters: list[Parameter] = field(default_factory=list)
    doc: str = ""


@dataclass
class Field:
    """A record's field: ``offset`` in bytes; ``record`` holds the definition of an anonymous inner struct or union, of
    which there may be several. ``only`` is the CUDA major that alone has it."""

    name: str
    type: str
    offset: int
    size: int
    doc: str = ""
    record: Record | None = None
    only: int = 0


@dataclass
class Record:
    """A struct or union under its tag (empty for anonymous ones); sizes in bytes.

    ``older`` is its layout in the older CUDA major where a field has another place there. ``only`` is the major that
    alone has the record.
    """

    kind: str
    tag: str
    size: int
    align: int
    fields: list[Field]
    doc: str = ""
    older: Record | None = None
    only: int = 0


@dataclass
class EnumMember:
    name: str
    value: int
    doc: str = ""
    only: int = 0
    older: int | None = None  # value in the older CUDA major where that is another one


@dataclass
class Enum:
    """An enumeration under its tag (empty for anonymous ones)."""

    tag: str
    members: list[EnumMember]
    doc: str = ""
    only: int = 0


@dataclass
class Typedef:
    """``typedef TYPE NAME``. ``type`` is ``struct TAG``, ``union TAG``, ``enum TAG`` or any other C type.

    For a typedef of an anonymous struct, union or enum the tag is empty in the declaration just before it, and
    ``type`` is ``struct``, ``union`` or ``enum`` alone. ``revision`` is the number of a struct whose first field says
    its version and size, as NVML's do. ``macro`` says that it is ``#define NAME TYPE``.
    """

    name: str
    type: str
    size: int
    revision: int = 0
    doc: str = ""
    macro: bool = False
    only: int = 0


@dataclass
class Constant:
    """A macro that is a number: its text in C and its value."""

    name: str
    text: str
    value: int
    doc: str = ""
    only: int = 0
    older: int | None = None


Declaration = Record | Enum | Typedef
KINDS: dict[str, type[Any]] = {"record": Record, "enum": Enum, "typedef": Typedef}


@dataclass
class Module:
    """Everything one library declares; ``types`` in the order of the headers.

    It is the union of two CUDA majors: ``version`` is the newest one, ``older`` the last of the major before it.
    ``renamed`` has the names of the older major for what has another name in the newest (``cudaMemAdvise_v2``).
    """

    library: str
    version: str
    types: list[Declaration]
    constants: list[Constant]
    functions: list[Function]
    older: str = ""
    renamed: dict[str, str] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        path.write_text(_render(_strip(self._as_dict())) + "\n")

    def _as_dict(self) -> dict[str, Any]:
        names = {cls: kind for kind, cls in KINDS.items()}
        return {
            "library": self.library,
            "version": self.version,
            "older": self.older,
            "renamed": self.renamed,
            "types": [{"declares": names[type(t)], **asdict(t)} for t in self.types],
            "constants": [asdict(c) for c in self.constants],
            "functions": [asdict(f) for f in self.functions],
        }

    @staticmethod
    def load(path: Path) -> Module:
        data = json.loads(path.read_text())
        return Module(
            library=data["library"],
            version=data["version"],
            types=[_load_type(t) for t in data["types"]],
            constants=[Constant(**_joined(c)) for c in data["constants"]],
            functions=[_load_function(_joined(f)) for f in data["functions"]],
            older=data.get("older", ""),
            renamed=data.get("renamed", {}),
        )


def _load_function(data: dict[str, Any]) -> Function:
    for key in ("parameters", "older_parameters"):
        data[key] = [Parameter(**p) for p in data.get(key, [])]
    return Function(**data)


def _load_type(data: dict[str, Any]) -> Declaration:
    data = _joined(data)
    kind = data.pop("declares")
    if kind == "record":
        return _load_record(data)
    if kind == "enum":
        return Enum(**{**data, "members": [EnumMember(**_joined(m)) for m in data["members"]]})
    return Typedef(**data)


def _load_record(data: dict[str, Any]) -> Record:
    fields = []
    for item in data["fields"]:
        item = _joined(item)
        inner = item.pop("record", None)
        fields.append(Field(**item, record=_load_record(_joined(inner)) if inner else None))
    older = data.pop("older", None)
    return Record(**{**data, "fields": fields, "older": _load_record(_joined(older)) if older else None})


def _joined(data: dict[str, Any]) -> dict[str, Any]:
    """Documentation is stored as a list of lines, so that a change in it is a change of lines."""
    return {k: "\n".join(v) if k == "doc" else v for k, v in data.items()}


_ALWAYS = ("parameters", "tag", "name", "members", "fields", "version", "constants")


_ZEROS = (("revision", 0), ("only", 0))


def _absent(value: Any) -> bool:
    return value is None or value is False or value in ("", [], {})


def _strip(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {k: _strip(v) for k, v in value.items() if k in _ALWAYS or not _absent(v) and (k, v) not in _ZEROS}
        if "doc" in kept:
            kept["doc"] = kept["doc"].split("\n")
        return kept
    return [_strip(v) for v in value] if isinstance(value, list) else value


def _render(value: Any, indent: str = "") -> str:
    """JSON in which whatever fits into a line takes one line."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(flat) + len(indent) <= 110 or not isinstance(value, (dict, list)) or not value:
        return flat
    inner = indent + " "
    if isinstance(value, dict):
        items = [f"{inner}{json.dumps(k)}: {_render(v, inner)}" for k, v in value.items()]
        return "{\n" + ",\n".join(items) + "\n" + indent + "}"
    return "[\n" + ",\n".join(inner + _render(v, inner) for v in value) + "\n" + indent + "]"
