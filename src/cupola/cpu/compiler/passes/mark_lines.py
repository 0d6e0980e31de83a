"""Lines that have code of their own in the source, and none in the PTX that says so.

A block that only jumps has no instruction left once the control flow is known, nor has a call once its function is
inlined. Where lines are counted, ``.here`` stands in front of them: an instruction that does nothing.
"""

from __future__ import annotations

from cupola.cpu.compiler.ptx import ast


def mark_lines(module: ast.Module, *, ends: bool = False) -> None:
    """Put ``.here`` in front of each plain jump and each call that has a line; with ``ends``, of each return, too.

    A jump right behind a conditional branch is the other way of that branch.
    """
    for function in module.functions.values():
        if function.body is None:
            continue
        marked: list[ast.Statement] = []
        for statement in function.body:
            if isinstance(statement, ast.Instruction) and statement.location.line:
                before = marked[-1] if marked else None
                other_way = isinstance(before, ast.Instruction) and before.opcode == "bra"
                jumps = statement.opcode == "bra" and statement.guard is None and not other_way
                if jumps or statement.opcode == "call" or (ends and statement.opcode in ("ret", "exit")):
                    marked.append(ast.Instruction(".here", (), (), None, statement.location, ""))
            marked.append(statement)
        function.body = marked
