#!/usr/bin/env python
"""Run snippets with cuda.core and with cupola, both on the CPU device or on a GPU, and print where they differ.

    pip install cupola cuda-core cuda-bindings numpy
    tools/compare_cuda_core.py                   # all tables in tools/cuda_core_snippets
    tools/compare_cuda_core.py streams launches  # these
    tools/compare_cuda_core.py --known           # list the differences that are on purpose, too
    tools/compare_cuda_core.py --device gpu      # on a GPU: the tables that need one

A table is Python: what comes before the line ``# rows`` is run once, in either process, and each statement below it
is a row that starts from those names. Compared are the type and ``repr`` of the row's last expression with addresses
masked, or the class of its exception, with CUDA's status where its text starts with one, and the classes of its
warnings. Rows share a process, unless the setup says ``# each row in a process of its own``, as for errors that stay
with their context. A table whose setup says ``# on a GPU`` asks what cuda.core has only there, such as NVML. A row that
differs on purpose ends with a comment ``# differs: why``, and that it does is checked.

``--reference COMMAND`` names another interpreter for cuda.core, such as one with an environment of its own. It needs
cupola, too, for the CPU device.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TABLES = Path(__file__).resolve().with_name("cuda_core_snippets")
SEPARATOR = "# rows\n"
ON_A_GPU = "# on a GPU\n"
ALONE = "# each row in a process of its own\n"
ADDRESS = re.compile(r"0x[0-9a-f]+|(?<![\w.])[0-9]{9,}(?![\w.])")
STATUS = re.compile(r"(?:\d+: )?((?:\w*ERROR_|cudaError)\w+)")


@dataclass(frozen=True)
class Row:
    line: int
    source: str
    why: str | None  # it differs


@dataclass(frozen=True)
class Outcome:
    text: str
    detail: str  # the exception's message, which is not compared


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="names of tables (default: all)")
    parser.add_argument("--known", action="store_true", help="list the differences that are on purpose, too")
    parser.add_argument("--reference", default=sys.executable, metavar="COMMAND", help="the interpreter for cuda.core")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu", help="where (default: cpu)")
    options = parser.parse_args()
    paths = [TABLES / f"{name}.txt" for name in options.tables] or [
        path for path in sorted(TABLES.glob("*.txt")) if (ON_A_GPU in path.read_text()) == (options.device == "gpu")
    ]
    os.environ["CUPOLA_DEVICE"] = options.device
    reference = [*shlex.split(options.reference), __file__, "--child", "reference"]
    cupola = [sys.executable, "-m", "cupola", "run", "--device", options.device, __file__, "--child", "cupola"]
    unexpected = 0
    for path in paths:
        setup, rows = read_table(path)
        theirs, ours = (run_rows(command, path, len(rows)) for command in (reference, cupola))
        known = 0
        for row, their, our in zip(rows, theirs, ours, strict=True):
            differs = not same(their.text, our.text)
            known += differs and row.why is not None
            if differs == (row.why is not None) and not (differs and options.known):
                continue
            unexpected += differs != (row.why is not None)
            print(f"{path.name}:{row.line}: {row.source}")
            if row.why is not None:
                print(f"    {'on purpose' if differs else 'no longer differs'}: {row.why}")
            print(f"    cuda.core: {their.text}{their.detail}\n    cupola:    {our.text}{our.detail}")
        print(f"{path.stem}: {len(rows)} rows, {known} differ on purpose", flush=True)
    print(f"{unexpected} unexpected")
    return int(unexpected > 0)


def read_table(path: Path) -> tuple[str, list[Row]]:
    """Read a table: the code before the rows, and the rows."""
    text = path.read_text()
    head, separator, body = text.partition(SEPARATOR)
    if not separator:
        raise ValueError(f"{path} has no line {SEPARATOR.strip()!r}")
    first = head.count("\n") + 1
    lines = body.splitlines()
    statements: list[Row] = []
    for group in _groups(lines):
        source = "\n".join(lines[group[0] : group[1]])
        code, _, why = source.rpartition("  # differs: ") if "  # differs: " in source else (source, "", None)
        ast.parse(code, str(path))
        statements.append(Row(first + group[0] + 1, code, why))
    return head, statements


def _groups(lines: list[str]) -> list[tuple[int, int]]:
    """(first, behind the last) line of each row: one that is not indented, and the indented ones below it."""
    starts = [i for i, line in enumerate(lines) if line and not line[0].isspace() and not line.startswith("#")]
    groups = []
    for i in starts:
        end = i + 1
        while end < len(lines) and lines[end][:1].isspace():
            end += 1
        groups.append((i, end))
    return groups


def run_rows(command: list[str], path: Path, count: int) -> list[Outcome]:
    """Run all rows of a table by processes of this command: a new one behind each row that ends its process."""
    outcomes: list[Outcome] = []
    while len(outcomes) < count:
        start = len(outcomes)
        with tempfile.NamedTemporaryFile("r", suffix=".jsonl") as file:
            child = subprocess.run(
                [*command, str(path), str(start), file.name], capture_output=True, text=True, errors="replace"
            )
            outcomes += [Outcome(*json.loads(line)) for line in file]
        if len(outcomes) < count:
            if child.returncode == 0 and len(outcomes) > start:
                continue
            if child.returncode == 0 or (len(outcomes) == start and "Traceback" in child.stderr):
                raise RuntimeError(f"{shlex.join(command)} {path}:\n{child.stdout}{child.stderr}")
            outcomes.append(Outcome(f"the process ended: {child.returncode}", " " + child.stderr[-600:]))
    return outcomes


def same(theirs: str, ours: str) -> bool:
    """Whether these are the same; what has Python's own ``repr`` in cuda.core may have a better one."""
    parts = [re.escape(part) for part in re.split(r"<\w+ object at ADDRESS>", theirs)]
    return re.fullmatch("<.*>".join(parts), ours, re.DOTALL) is not None


def child(kind: str, path: str, start: str, out: str) -> None:
    """Run the rows from `start` on, and write a line of JSON for each."""
    if kind == "reference" and os.environ["CUPOLA_DEVICE"] == "cpu":
        from cupola.cpu import libcuda

        libcuda.provide()
    setup, rows = read_table(Path(path))
    names: dict[str, Any] = {"__name__": "snippets"}
    exec(compile(setup, path, "exec"), names)
    first = int(start)
    rows = rows[first : first + 1] if ALONE in setup else rows[first:]
    with open(out, "w") as file:
        for row in rows:
            outcome = run_row(row, names)
            file.write(json.dumps(outcome) + "\n")
            file.flush()
    os._exit(0)  # what the rows left open is not compared


def run_row(row: Row, names: dict[str, Any]) -> tuple[str, str]:
    """Run one row: what it gives, and the message if that is an exception."""
    body = ast.parse(row.source).body
    names = dict(names)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            last = body[-1]
            value = None
            if isinstance(last, ast.Expr):
                body.pop()
            exec(compile(ast.Module(body, []), "row", "exec"), names)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), "row", "eval"), names)
            text, detail = show(value), ""
        except BaseException as error:
            status = STATUS.match(str(error))
            text = f"raises {type(error).__name__}" + (f" {status[1]}" if status else "")
            detail = " | " + one_line(error)
    for warning in caught:
        text += f" + {warning.category.__name__}"
        detail += " | " + one_line(warning.message)
    return text, detail


def one_line(message: BaseException | str) -> str:
    """The beginning of a text, as it may be printed."""
    return str(message)[:300].encode("unicode_escape").decode()


def show(value: Any) -> str:
    """Type and value without addresses, and without the name of the module."""
    kind = type(value).__name__
    if isinstance(value, dict):
        return kind + "{" + ", ".join(f"{show(k)}: {show(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (set, frozenset)):
        return kind + "{" + ", ".join(sorted(map(show, value))) + "}"
    if isinstance(value, (list, tuple)):
        names = getattr(value, "_fields", None)
        shown = [show(item) for item in value]
        if names:
            shown = [f"{name}={item}" for name, item in zip(names, shown, strict=True)]
        return kind + "(" + ", ".join(shown) + ")"
    if value is None or isinstance(value, bool):
        return str(value)
    text = re.sub(r"<(class '|function |)(?:\w+\.)+(\w+(?:'| object at| at))", r"<\1\2", repr(value))
    return f"{kind} {ADDRESS.sub('ADDRESS', text)}"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    sys.exit(main())
