"""A page for each object of the API, tables of them, the CUDA functions behind them, and links to their sources.

The pages of ``docs/api`` list objects by autodoc's directives. This Sphinx extension writes a page for each of them
(``docs/api/generated``), and puts a table in place of the directives: names, and what they are in a line. A docstring
that names no CUDA function gets those that the source calls.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from cupola._signposts import Sign

DOCS = Path(__file__).resolve().parent
SOURCES = DOCS.parent / "src"
PAGES = DOCS / "api"
REPOSITORY = "https://github.com/cupola-project/cupola/blob/main/src/"

BLOCK = re.compile(r"^\.\. auto(class|function|exception):: (\S+)\n((?:   .*\n)*)\n*", re.M)
MODULE = re.compile(r"^\.\. currentmodule:: (\S+)\n", re.M)
DEFINITION = re.compile(r"^( *)(?:cdef class|class|def|cpdef|cdef|async def)\b(?:[^(:=\n]*?[ *])?(\w+)(?=[(:])", re.M)
ASSIGNMENT = re.compile(r"^(\w+) = \w", re.M)
CALL = re.compile(r"\b(?:cu|nvrtc|nvjitlink|driver|_driver)\.((?:cu|nvrtc|nvJitLink)[A-Z]\w+)")
# What calls make sure of first, whatever they do.
ALWAYS = re.compile(r"cuCtx(Get|Set|Push|Pop)(Current|Device)|cuGetError|cuCtxGetId|cuInit|cuPointerGetAttribute$")
NAMED = re.compile(r"``(cu|nvrtc|nvJitLink|nvvm)[A-Z]\w+``")


# ---- Sources -------------------------------------------------------------------------------------------------------


def source_of(module: str) -> Path | None:
    """The file of a module."""
    path = SOURCES.joinpath(*module.split("."))
    candidates = (path.with_suffix(".pyx"), path.with_suffix(".py"), path / "__init__.py")
    return next((candidate for candidate in candidates if candidate.is_file()), None)


@functools.cache
def definitions(path: Path) -> dict[str, tuple[int, str]]:
    """Line and text of each class and function of a file, by qualified name."""
    text = path.read_text()
    found: dict[str, tuple[int, str]] = {}
    owner = ""
    for start in ASSIGNMENT.finditer(text):
        found[start[1]] = (text[: start.start()].count("\n") + 1, "")
    for start in DEFINITION.finditer(text):
        depth, name = len(start[1]), start[2]
        if depth == 0:
            owner = name
        elif depth != 4:
            continue
        end = re.compile(rf"^ {{0,{depth}}}(?![ )\n#])", re.M).search(text, text.find("\n", start.end()) + 1)
        body = text[start.end() : end.start() if end else len(text)]
        key = name if depth == 0 else f"{owner}.{name}"
        if found.get(key, (0, ""))[1] == "":
            found[key] = (text[: start.start()].count("\n") + 1, body)
    return found


def resolve(module: str, name: str) -> tuple[Path, str] | None:
    """File and qualified name of something public, where that is written."""
    try:
        subject: Any = importlib.import_module(module)
        holder, last = subject, ""
        for part in name.split("."):
            holder, last = subject, part
            if inspect.isclass(holder):
                holder = next(base for base in holder.__mro__ if part in vars(base))
                subject = vars(holder)[part]
            else:
                subject = getattr(holder, part)
    except (ImportError, AttributeError, StopIteration):
        return None
    if inspect.isclass(holder) and not inspect.isclass(subject):
        path, known = source_of(holder.__module__), f"{holder.__qualname__}.{last}"
    else:
        path, known = source_of(getattr(subject, "__module__", None) or module), getattr(subject, "__qualname__", last)
    if path is not None and known in definitions(path):
        return path, known
    # Its module is the public one, which gets it from another.
    for key, other in list(sys.modules.items()):
        if key.startswith("cupola") and vars(other).get(last) is subject:
            path = source_of(key)
            if path is not None and last in definitions(path):
                return path, last
    return None


def link(domain: str, info: dict[str, str]) -> str | None:
    """For sphinx.ext.linkcode: where the source is."""
    found = resolve(info["module"], info["fullname"]) if domain == "py" and info["module"] else None
    if found is None:
        return None
    path, name = found
    return f"{REPOSITORY}{path.relative_to(SOURCES).as_posix()}#L{definitions(path)[name][0]}"


def functions_behind(path: Path, name: str) -> list[str]:
    """CUDA functions that a function calls by itself, or by functions beside it."""
    known = definitions(path)
    found: dict[str, None] = {}
    bodies, seen = [known[name][1]], {name}
    for _ in range(3):
        following = []
        for body in bodies:
            found.update(dict.fromkeys(CALL.findall(re.sub(r'"""(.*?)"""', "", body, flags=re.S))))
            for called in re.findall(r"(?<![.\w])(_?[a-z]\w+)\(", body):
                if called in known and called not in seen:
                    seen.add(called)
                    following.append(known[called][1])
        bodies = following
    return [function for function in found if not ALWAYS.match(function)]


def name_functions(app: Any, what: str, name: str, subject: Any, options: Any, lines: list[str]) -> None:
    if what not in {"method", "function", "property", "attribute"} or NAMED.search("\n".join(lines)):
        return
    module, _, rest = name.rpartition(".")
    while module and module not in MODULES:
        module, _, head = module.rpartition(".")
        rest = f"{head}.{rest}"
    found = resolve(module, rest) if module else None
    functions = functions_behind(*found) if found else []
    if 0 < len(functions) <= 6:
        lines += ["", "CUDA: " + ", ".join(f"``{function}``" for function in functions), ""]


# ---- Pages ---------------------------------------------------------------------------------------------------------

MODULES: set[str] = set()


def objects(text: str) -> list[tuple[re.Match[str], str, str]]:
    """The directives of a page, each with its module and its whole name."""
    found = []
    for block in BLOCK.finditer(text):
        before = [match[1] for match in MODULE.finditer(text, 0, block.start())]
        module = before[-1] if before else "cupola"
        name = block[2]
        if name.startswith("cupola"):
            module, name = name.rpartition(".")[::2]
        found.append((block, module, name))
    return found


def summary(module: str, name: str) -> str:
    """What an object is, in a line."""
    try:
        subject: Any = importlib.import_module(module)
        for part in name.split("."):
            subject = getattr(subject, part)
    except (ImportError, AttributeError):
        return ""
    text = (inspect.getdoc(subject) or "").partition("\n\n")[0]
    return line_of(text)


def line_of(text: str) -> str:
    """A text as one line; names that only its class knows are no references there."""
    return re.sub(r":(?:meth|attr|func|class):`[.~]*(\w+)`", r"``\1``", " ".join(text.split()))


def table(rows: list[tuple[str, str]]) -> str:
    lines = [".. list-table::", "   :widths: 30 70", "   :class: summary", ""]
    for name, text in rows:
        lines += [f"   * - {name}", f"     - {text}"]
    return "\n".join(lines) + "\n\n"


def members(module: str, name: str, options: str) -> str:
    """A table of what a class has, for classes with several things."""
    try:
        subject = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        return ""
    if not inspect.isclass(subject) or ":members:" not in options or re.search(r":members: \w", options):
        return ""
    everything = dir(subject) if ":inherited-members:" in options else list(vars(subject))
    excluded = re.findall(r":exclude-members: (.*)", options)
    hidden = set(excluded[0].split(", ")) if excluded else set()
    rows = []
    for key in everything:
        value = inspect.getattr_static(subject, key, None)
        text = inspect.getdoc(value) if callable(value) or hasattr(value, "__get__") else None
        if not key.startswith("_") and key not in hidden and text and not isinstance(value, Sign):
            first = line_of(text.partition("\n\n")[0])
            first = re.sub(r"^[\w\[\], .|]+: ", "", first)
            rows.append((f":py:obj:`~{module}.{name}.{key}`", first[:1].upper() + first[1:]))
    return table(rows) if len(rows) > 5 else ""


def write_pages(app: Any) -> None:
    """Write a page for each object."""
    wanted = {}
    for path in sorted(PAGES.glob("*.rst")):
        for block, module, name in objects(path.read_text()):
            MODULES.add(module)
            # Not in the tree: on each page it would have a line for each object.
            where = f":orphan:\n\n:doc:`API <../index>` / :doc:`../{path.stem}`\n\n"
            page = (
                f"{where}{name}\n{'=' * len(name)}\n\n.. currentmodule:: {module}\n\n{members(module, name, block[3])}"
            )
            wanted[f"{module}.{name}.rst"] = f"{page}.. auto{block[1]}:: {name}\n{block[3]}"
    folder = PAGES / "generated"
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        if path.name not in wanted:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name, text in wanted.items():
        if not (folder / name).is_file() or (folder / name).read_text() != text:
            (folder / name).write_text(text)


def put_tables(app: Any, page: str, content: list[str]) -> None:
    """Replace the directives of a page of docs/api by tables."""
    if not re.fullmatch(r"api/\w+", page) or not (PAGES / f"{page[4:]}.rst").is_file():
        return
    text, at, out, rows = content[0], 0, [], []
    for block, module, name in objects(text):
        if text[at : block.start()].strip() and rows:
            out.append(table(rows))
            rows = []
        out.append(text[at : block.start()])
        rows.append((f":doc:`{name} <generated/{module}.{name}>`", summary(module, name)))
        at = block.end()
    if rows:
        out.append(table(rows))
    content[0] = "".join(out) + text[at:]


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", write_pages)
    app.connect("source-read", put_tables)
    app.connect("autodoc-process-docstring", name_functions, priority=400)
    return {"parallel_read_safe": True}
