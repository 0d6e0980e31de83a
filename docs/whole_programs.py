"""Programs of ``examples/`` that need no other file: what they import from modules beside them goes into them.

So what readers of the gallery download runs as it is.
"""

from __future__ import annotations

import ast
from pathlib import Path

MODULES = ("arrays", "opengl", "pictures")

SHARED = """\
# %%
# What several programs of the gallery share:

{definitions}


# %%
# And the call:

"""
CALL = 'if __name__ == "__main__":\n'


def whole(source: str, folder: Path) -> str:
    """A program with the definitions that it imports from modules of the folder, in front of its call."""
    lines = source.splitlines(keepends=True)
    imports: list[str] = []
    definitions: list[str] = []
    for statement in reversed(ast.parse(source).body):
        if isinstance(statement, ast.ImportFrom) and statement.module in MODULES:
            wanted = {alias.name for alias in statement.names}
            theirs, text = needed((folder / f"{statement.module}.py").read_text(), wanted)
            imports, definitions = theirs + imports, [text, *definitions]
            del lines[statement.lineno - 1 : statement.end_lineno]
    if not definitions:
        return source
    program = "".join(lines)
    before, call, after = program.partition(CALL)
    assert call, "a program ends with its call"
    there = {ast.unparse(statement) for statement in ast.parse(program).body}
    missing = [line for line in dict.fromkeys(imports) if line not in there]
    text = "\n\n\n".join(definitions)
    shared = SHARED.format(definitions="\n".join(missing) + "\n\n" * bool(missing) + text)
    return before.rstrip() + "\n\n\n" + shared + call + after


def needed(source: str, names: set[str]) -> tuple[list[str], str]:
    """The imports and the definitions of a module that some of its names need, in its order."""
    body = ast.parse(source).body
    statements = [s for s in body if not isinstance(s, (ast.Import, ast.ImportFrom, ast.Expr))]
    wanted, kept = set(names), set[int]()
    grew = True
    while grew:
        grew = False
        for number, statement in enumerate(statements):
            if number not in kept and wanted & defined(statement):
                kept.add(number)
                wanted |= {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
                grew = True
    imports = [
        ast.unparse(s)
        for s in body
        if (isinstance(s, ast.Import) or (isinstance(s, ast.ImportFrom) and s.module != "__future__"))
        and wanted & {(alias.asname or alias.name).partition(".")[0] for alias in s.names}
    ]
    texts = [ast.get_source_segment(source, statements[number]) or "" for number in sorted(kept)]
    return imports, "\n\n\n".join(
        with_decorators(source, statements[n], t) for n, t in zip(sorted(kept), texts, strict=True)
    )


def with_decorators(source: str, statement: ast.stmt, text: str) -> str:
    """The text of a statement with its decorators, which its segment leaves out."""
    decorators = getattr(statement, "decorator_list", [])
    return "".join(f"@{ast.get_source_segment(source, d)}\n" for d in decorators) + text


def defined(statement: ast.stmt) -> set[str]:
    """The names that a statement of a module defines."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return {statement.name}
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return {node.id for target in targets if target for node in ast.walk(target) if isinstance(node, ast.Name)}
