"""Headers -> IR, with libclang.

The driver's headers rename functions with macros (``#define cuMemAlloc cuMemAlloc_v2``), so libclang reports exported
symbols and the macros give the public names. They are read three times: plainly; with the per-thread default stream,
which shows the ``_ptds`` and ``_ptsz`` symbols; and as NVIDIA builds the driver itself, which shows the older symbols
that are still exported. ``cudaTypedefs.h`` has one function-pointer type for each version of a function's signature.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import clang.cindex as ci
from clang.cindex import CursorKind, TypeKind

from .ir import Constant, Declaration, Enum, EnumMember, Field, Function, Module, Parameter, Record, Typedef
from .libraries import ROOT, Library

_OPTIONS = ci.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD | ci.TranslationUnit.PARSE_SKIP_FUNCTION_BODIES
_PARAM = re.compile(r"[\\@]param\s*\[\s*([a-z, ]+?)\s*\]\s+(\w+)")


def find_include() -> Path:
    """Find the folder of NVIDIA's headers among the installed packages (``nvidia-cuda-runtime``)."""
    import importlib.util

    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for header in sorted(Path(folder).glob("cu*/include/cuda.h"), reverse=True):  # CUDA 12 has a folder a wheel
            if re.fullmatch(r"cu\d+", header.parts[-3]):
                return header.parent
    raise SystemExit("no cuda.h found: pip install nvidia-cuda-runtime nvidia-cuda-nvrtc, or give --include")


def parse(library: Library, include: Path) -> Module:
    """Read the headers of `library` from the folder `include`."""
    plain = _translate(library, include)
    macros = {c.spelling: c for c in plain.get_children() if c.kind == CursorKind.MACRO_DEFINITION}
    module = Module(library.name, _version(include), [], [], [])
    public = _public_names(macros)
    values: dict[str, int] = {}
    seen = {name for symbol, name in public.items() if symbol != name}  # symbols whose name means a newer one
    for cursor in _own(plain, library):
        if cursor.kind == CursorKind.FUNCTION_DECL:
            exported = cursor.storage_class != ci.StorageClass.STATIC  # static ones are inline, in terms of others
            if exported and cursor.spelling.startswith(library.prefix) and cursor.spelling not in seen:
                seen.add(cursor.spelling)
                module.functions.append(_function(cursor, public.get(cursor.spelling, cursor.spelling)))
        else:
            for declared in (*_tagged_inside(cursor), cursor):
                if declaration := _declaration(declared, values):
                    module.types.append(declaration)
    module.types += _macro_types(library, macros, module)
    module.constants = _constants(library, macros, values)
    _add_struct_versions(module, macros)
    _add_descriptions(module, library, include)
    if library.typedefs:
        _add_versions(module, library, include)
    if library.streams:
        _add_symbols(module, library, include)
    return module


def _translate(library: Library, include: Path, *defines: str, extra: tuple[str, ...] = ()) -> ci.Cursor:
    text = "".join(f'#include "{name}"\n' for name in (*library.headers, *extra))
    gcc = subprocess.run(["gcc", "-print-file-name=include"], capture_output=True, text=True, check=True)
    arguments = [
        "-x",
        "c",
        "-std=c11",
        "-D_DEFAULT_SOURCE",
        "-isystem",
        gcc.stdout.strip(),
        "-I",
        str(ROOT / "headers"),
    ]
    arguments += ["-I", str(include), *(f"-D{name}" for name in defines)]
    files = [("all.c", text)]
    if library.inline:
        files += [(str(include / name), _declared((include / name).read_text(), library)) for name in library.headers]
    unit = ci.Index.create().parse("all.c", arguments, unsaved_files=files, options=_OPTIONS)
    errors = [str(d) for d in unit.diagnostics if d.severity >= ci.Diagnostic.Error]
    if errors:
        raise SystemExit("\n".join(errors))
    return unit.cursor


def _declared(header: str, library: Library) -> str:
    """The header with its functions declared rather than defined inline.

    Defining the macro would do the same, but a comment does not belong to a declaration behind an ``#else``.
    """
    return re.sub(rf"#ifndef {library.inline}\n.*?#else\n(.*?)#endif\n", r"\1", header, flags=re.S)


def _own(cursor: ci.Cursor, library: Library) -> Iterator[ci.Cursor]:
    names = {Path(h).name for h in library.headers} | {"gl.h", "egl.h", "eglext.h"}
    for child in cursor.get_children():
        if child.kind in (CursorKind.LINKAGE_SPEC, CursorKind.UNEXPOSED_DECL):
            yield from _own(child, library)
        elif child.location.file and (Path(child.location.file.name).name in names or child.spelling in library.also):
            yield child


def _version(include: Path) -> str:
    """The CUDA version of the folder of headers, such as 13.5."""
    match = re.search(r"#define CUDA_VERSION (\d+)", (include / "cuda.h").read_text())
    number = int(match[1]) if match else 0
    return f"{number // 1000}.{number % 1000 // 10}"


def _tokens(macro: ci.Cursor) -> list[str]:
    return [token.spelling for token in macro.get_tokens()][1:]


def _public_names(macros: dict[str, ci.Cursor]) -> dict[str, str]:
    """Exported symbol -> public name, from ``#define public symbol`` and ``#define public __CUDA_API_PTSZ(symbol)``."""
    names = {}
    for name, macro in macros.items():
        tokens = _tokens(macro)
        if name.startswith("cu") and tokens:
            if re.fullmatch(r"__(?:CUDA|CUDART)_API_PT[SD][ZS]", tokens[0]):
                tokens = tokens[2:-1]
            if len(tokens) == 1 and tokens[0].isidentifier():
                names[tokens[0]] = name
    return names


def _function(cursor: ci.Cursor, name: str) -> Function:
    doc = _comment(cursor)
    directions = {m[1]: m[0].replace(" ", "").replace("in,out", "inout") for m in _PARAM.findall(doc)}
    parameters = [
        Parameter(p.spelling or f"arg{i}", _spelling(p.type), directions.get(p.spelling, ""))
        for i, p in enumerate(cursor.get_arguments())
    ]
    deprecated = cursor.availability == ci.AvailabilityKind.DEPRECATED
    return Function(name, cursor.spelling, _spelling(cursor.result_type), parameters, deprecated=deprecated, doc=doc)


def _declaration(cursor: ci.Cursor, values: dict[str, int]) -> Declaration | None:
    if cursor.kind in (CursorKind.STRUCT_DECL, CursorKind.UNION_DECL) and cursor.is_definition():
        return _record(cursor)
    if cursor.kind == CursorKind.ENUM_DECL and cursor.is_definition():
        members = [
            EnumMember(m.spelling, m.enum_value, _comment(m))
            for m in cursor.get_children()
            if m.kind == CursorKind.ENUM_CONSTANT_DECL
        ]
        values.update((m.name, m.value) for m in members)
        return Enum(_tag(cursor), members, _comment(cursor))
    if cursor.kind == CursorKind.TYPEDEF_DECL:
        target = cursor.underlying_typedef_type
        size = max(target.get_size(), 0)
        declared = target.get_declaration()
        anonymous = target.kind == TypeKind.ELABORATED and declared.is_definition() and not _tag(declared)
        spelling = _spelling(target)
        if anonymous and declared.kind != CursorKind.TYPEDEF_DECL:
            spelling = {CursorKind.ENUM_DECL: "enum", CursorKind.UNION_DECL: "union"}.get(declared.kind, "struct")
        return Typedef(cursor.spelling, spelling, size, doc=_comment(cursor))
    return None


def _tagged_inside(cursor: ci.Cursor) -> Iterator[ci.Cursor]:
    """Records with a tag that are defined inside another one; C puts them in the outer scope."""
    if cursor.kind in (CursorKind.STRUCT_DECL, CursorKind.UNION_DECL):
        for child in cursor.get_children():
            yield from _tagged_inside(child)
            if child.kind in (CursorKind.STRUCT_DECL, CursorKind.UNION_DECL) and child.is_definition() and _tag(child):
                yield child


def _record(cursor: ci.Cursor) -> Record:
    kind = "union" if cursor.kind == CursorKind.UNION_DECL else "struct"
    fields = []
    for item in cursor.type.get_fields():
        if item.is_bitfield():
            raise SystemExit(f"{cursor.spelling}.{item.spelling}: bit-fields are not supported")
        element = item.type
        while element.kind == TypeKind.CONSTANTARRAY:
            element = element.element_type
        declared = element.get_declaration()
        inner = None
        if element.get_canonical().kind == TypeKind.RECORD and not _tag(declared):
            inner = _record(declared) if declared.kind != CursorKind.TYPEDEF_DECL else None
        name = "" if "(" in item.spelling else item.spelling
        fields.append(
            Field(
                name=name,
                type=inner.kind if inner else _spelling(item.type),
                offset=item.get_field_offsetof() // 8,
                size=item.type.get_size(),
                doc=_comment(item),
                record=inner,
            )
        )
    size, align = cursor.type.get_size(), cursor.type.get_align()
    return Record(kind, _tag(cursor), size, align, fields, _comment(cursor))


def _tag(cursor: ci.Cursor) -> str:
    return "" if cursor.is_anonymous() or "(" in cursor.spelling or not _has_tag(cursor) else cursor.spelling


def _has_tag(cursor: ci.Cursor) -> bool:
    """libclang names ``typedef struct {...} T`` after its typedef; only the tokens tell whether there is a tag."""
    head = takewhile(lambda token: token.spelling not in "{;", cursor.get_tokens())
    return any(token.spelling == cursor.spelling for token in head)


def _spelling(kind: ci.Type) -> str:
    if kind.kind == TypeKind.INCOMPLETEARRAY:
        return f"{_spelling(kind.element_type)} *"
    return re.sub(r"\bloff_t\b", "off_t", re.sub(r"\b_Bool\b", "bool", str(kind.spelling)))


def _comment(cursor: ci.Cursor) -> str:
    raw = cursor.raw_comment or ""
    if not raw or raw.lstrip().startswith(("/*!\n * \\file", "/**\n * \\file")):
        return ""
    lines = []
    for line in raw.splitlines():
        line = re.sub(r"^\s*(/\*[*!]+<?|///<?|\*+/|\*(?!/))", "", line)
        lines.append(re.sub(r"\s*\*+/\s*$", "", line).rstrip())
    margin = min((len(x) - len(x.lstrip()) for x in lines[1:] if x.strip()), default=0)
    lines = [lines[0].strip(), *(x[margin:] for x in lines[1:])]
    return "\n".join(lines).strip("\n")


def _macro_types(library: Library, macros: dict[str, ci.Cursor], module: Module) -> Iterator[Typedef]:
    """Second names of types that the header gives with ``#define`` rather than ``typedef``."""
    sizes = {t.name if isinstance(t, Typedef) else t.tag: getattr(t, "size", 4) for t in module.types}
    for name, macro in macros.items():
        tokens = _tokens(macro)
        if name.startswith(library.constants or ("\0",)) and len(tokens) == 1 and sizes.get(tokens[0]):
            yield Typedef(name, tokens[0], sizes[tokens[0]], macro=True)


def _constants(library: Library, macros: dict[str, ci.Cursor], values: dict[str, int]) -> list[Constant]:
    """Macros with a number as value, except helpers of a header (``__X``) and macros that are undefined later."""
    known = dict(values)
    constants = []
    for name, macro in macros.items():
        location = macro.location.file
        if not location or not name.startswith(library.constants):
            continue
        tokens = _tokens(macro)
        value = _evaluate(tokens, known)
        if value is not None:
            known[name] = value
            constants.append(Constant(name, " ".join(tokens), value))
    return constants


def _evaluate(tokens: list[str], known: dict[str, int]) -> int | None:
    text = " ".join(tokens)
    text = re.sub(r"\(\s*(?:CU\w+|cuda\w+|int|void)\s*\**\s*\)", "", text)  # casts
    text = re.sub(r"\b(0x[0-9a-fA-F]+|\d+)[uUlL]+\b", r"\1", text)
    text = re.sub(r"[A-Za-z_]\w*", lambda m: str(known.get(m[0], m[0])), re.sub(r"\b0[xX]", "0x", text))
    if not text or re.search(r"[^-+~()<>|&* \da-fxA-F]", text):
        return None
    try:
        value = int(eval(text, {"__builtins__": {}}))
    except (SyntaxError, NameError, TypeError):
        return None
    return value & 0xFFFFFFFF if "~" in text else value


def _add_struct_versions(module: Module, macros: dict[str, ci.Cursor]) -> None:
    """``#define nvmlMemory_v2 NVML_STRUCT_VERSION(Memory, 2)`` says that nvmlMemory_v2_t begins with its version."""
    typedefs = {t.name: t for t in module.types if isinstance(t, Typedef)}
    for macro in macros.values():
        tokens = _tokens(macro)
        if len(tokens) == 6 and tokens[0] == "NVML_STRUCT_VERSION":
            typedef = typedefs.get(f"nvml{tokens[2]}_v{tokens[4]}_t")
            if typedef:
                typedef.revision = int(tokens[4])


def _add_descriptions(module: Module, library: Library, include: Path) -> None:
    """cuFile's header describes each status in the macro that makes the enumeration, CUFILE_OP(code, name, text)."""
    texts: dict[str, str] = {}
    for name in library.headers:
        header = (include / name).read_text() if (include / name).exists() else ""
        texts |= dict(re.findall(r"^\s*CUFILE_OP\([^,]+, *(\w+), *(.*?)\) *\\?$", header, re.M))
    for declared in module.types:
        if isinstance(declared, Enum):
            for member in declared.members:
                member.doc = member.doc or texts.get(member.name, "")


def _signature(cursor_type: ci.Type) -> tuple[str, ...]:
    return tuple(argument.get_canonical().spelling.replace("[]", " *") for argument in cursor_type.argument_types())


def _signatures(cursor: ci.Cursor) -> dict[str, tuple[str, ...]]:
    return {c.spelling: _signature(c.type) for c in cursor.walk_preorder() if c.kind == CursorKind.FUNCTION_DECL}


def _split(symbol: str) -> tuple[str, int]:
    """The name without its version, and the version: 1 when there is none."""
    match = re.fullmatch(r"(\w+)_v(\d)", symbol)
    return (match[1], int(match[2])) if match else (symbol, 1)


def _add_versions(module: Module, library: Library, include: Path) -> None:
    """Fill `since` and `base` from the types ``PFN_base_vN``.

    They do not name the symbol, so it is found by its signature. Several symbols can have the same (a change of
    meaning alone): their order is that of the CUDA versions.
    """
    cursor = _translate(library, include, extra=library.typedefs)
    internal = _translate(library, include, "__CUDA_API_VERSION_INTERNAL")
    signatures = _signatures(internal) | _signatures(cursor)
    versions: dict[tuple[str, tuple[str, ...]], set[int]] = {}
    for child in cursor.walk_preorder():
        match = re.fullmatch(r"PFN_(\w+?)_v(\d{4,})(?:_pt[ds][sz])?", child.spelling)
        if child.kind == CursorKind.TYPEDEF_DECL and match:
            pointee = child.underlying_typedef_type.get_pointee().get_canonical()
            versions.setdefault((match[1], _signature(pointee)), set()).add(int(match[2]))
    for function in module.functions:
        signature = signatures[function.symbol]
        function.base = function.symbol if (function.symbol, signature) in versions else _split(function.symbol)[0]
        known = sorted(versions.get((function.base, signature), ()))
        alike = [s for s, other in signatures.items() if other == signature and function.base in (s, _split(s)[0])]
        alike.sort(key=_split)
        position = alike.index(function.symbol) - len(alike)
        if -position > len(known):
            print(f"{module.library}: no version known for {function.name}")
            function.base = ""
        else:
            function.since = known[position]


def _add_symbols(module: Module, library: Library, include: Path) -> None:
    """Fill `thread_symbol` and `aliases` (older symbols of the same signature)."""
    plain = _signatures(_translate(library, include))
    threaded = _signatures(_translate(library, include, "CUDA_API_PER_THREAD_DEFAULT_STREAM"))
    internal = _signatures(_translate(library, include, "__CUDA_API_VERSION_INTERNAL"))
    variants = {re.sub(r"_pt[ds][sz]$", "", s): s for s in threaded if re.search(r"_pt[ds][sz]$", s)}
    for function in module.functions:
        function.thread_symbol = variants.get(function.symbol, "")
        name, version = _split(function.symbol)
        older = [f"{name}_v{n}" for n in range(version - 1, 1, -1)] + [name] * (version > 1)
        taken = {f.symbol for f in module.functions}
        function.aliases = [s for s in older if s not in taken and internal.get(s) == plain[function.symbol]]
