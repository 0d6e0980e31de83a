"""Signatures with types for compiled functions and classes, read from the stubs (``.pyi``) beside their sources.

A compiled function knows the names of its parameters but not their types, and a compiled class knows nothing of its
constructor. The stubs know both. This is a Sphinx extension; the test of the docstrings uses `find_stub`, too.
"""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).resolve().parents[1] / "src"


@functools.cache
def _definitions(module: str) -> dict[str, ast.FunctionDef]:
    """Functions of a stub by qualified name; the last of several overloads. Empty for modules without a stub."""
    path = SOURCES.joinpath(*module.split(".")).with_suffix(".pyi")
    if not path.is_file():
        return {}
    found = {}
    for node in ast.parse(path.read_text()).body:
        members = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        found.update({prefix + member.name: member for member in members if isinstance(member, ast.FunctionDef)})
    return found


def find_stub(subject: Any) -> ast.FunctionDef | None:
    """Find the stub of a function, a method or a class (of which it is the constructor's), without ``self``.

    Returns
    -------
    ast.FunctionDef or None
        None for what is not compiled, and for classes that are not made by calling them.
    """
    module, name = getattr(subject, "__module__", None), getattr(subject, "__qualname__", "")
    # Methods of compiled classes know their class, but not its module; class methods may come from a base of theirs.
    owner = getattr(subject, "__self__", None)
    bases = owner.__mro__ if isinstance(owner, type) else (getattr(subject, "__objclass__", object),)
    for base in bases:
        if module is None and name.rsplit(".", 1)[-1] in vars(base):
            module, name = base.__module__, f"{base.__qualname__}.{name.rsplit('.', 1)[-1]}"
    known = _definitions(module) if isinstance(module, str) else {}
    stub = known.get(name) or known.get(f"{name}.__new__") or known.get(f"{name}.__init__")
    if stub is None or (stub.args.vararg and stub.args.vararg.arg == "args"):
        return None
    return stub


def parameters_of(stub: ast.FunctionDef) -> ast.arguments:
    """Return the parameters without the object or class that a method is called on."""
    parameters = ast.arguments(**dict(ast.iter_fields(stub.args)))
    if parameters.args and parameters.args[0].arg in {"self", "cls"}:
        parameters.args = parameters.args[1:]
    return parameters


# What a signature shows although it is of no use to readers: the constructors of classes that nobody calls, and
# the older spellings of fields, which still work.
_NOT_CALLED = re.compile(r"\(\*args(: object)?, \*\*kwargs(: object)?\)")
_OLDER = re.compile(r", \w+: dataclasses\.InitVar\[[^=]*\] = <object object>")


def _process_signature(
    app: Any, what: str, name: str, subject: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str, str | None] | None:
    if what in {"attribute", "property"}:  # have a stub, too, and no signature
        return None
    stub = find_stub(subject)
    if stub is None and what == "class" and signature:
        return _NOT_CALLED.sub("", _OLDER.sub("", signature)), returns
    if stub is None:
        return None
    result = ast.unparse(stub.returns) if stub.returns and what != "class" else None
    return f"({ast.unparse(parameters_of(stub))})", result


def setup(app: Any) -> dict[str, bool]:
    app.connect("autodoc-process-signature", _process_signature)
    return {"parallel_read_safe": True}
