"""The code generator and the runtime agree on where things are."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import cupola.cpu.compiler.objects.abi as abi

CPU = Path(__file__).parents[3] / "src" / "cupola" / "cpu"


def c_name(field: str) -> str:
    """``tid.y`` of the tables is ``tid[1]`` in C."""
    name, _, component = field.partition(".")
    return f"{name}[{'xyz'.index(component)}]" if component else name


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_offsets_and_numbers(tmp_path: Path) -> None:
    facts = [(f"offsetof(cpu_context, {c_name(field)})", offset) for field, offset in abi.CONTEXT.items()]
    facts += [(f"offsetof(cpu_warp, {c_name(field)})", offset) for field, offset in abi.WARP.items()]
    facts += [("sizeof(cpu_site_cache)", abi.SITE_CACHE_BYTES), ("sizeof(cpu_warp)", abi.WARP_BYTES)]
    facts += [
        (f"CPU_STATE_{name}", getattr(abi, name))
        for name in ("DONE", "BARRIER", "YIELD", "INDEPENDENT", "WAITING", "FAULT", "SYNC", "CLUSTER")
    ]
    facts += [(f"CPU_RESULT_{name}", getattr(abi, f"RESULT_{name}")) for name in ("NONE", "COUNT", "ALL", "ANY")]
    spaces = {s: number for s, number in abi.SPACES.items() if s not in ("generic", "cluster")}
    facts += [(f"CPU_SPACE_{s.upper()}", number) for s, number in spaces.items()]
    facts += [("CPU_SITE_GENERIC", abi.SPACES["generic"]), ("CPU_SITE_GENERIC", abi.SPACES["cluster"])]
    facts += [
        (f"CPU_MBARRIER_{name}", getattr(abi, f"MBARRIER_{name}"))
        for name in ("DROP", "NO_COMPLETE", "PARITY", "TOGETHER", "COUNT_BITS")
    ]
    facts += [("CPU_RANK_SHIFT", abi.RANK_SHIFT)]
    facts += [("CPU_SITE_WRITE", abi.SITE_WRITE), ("CPU_SITE_CONTIGUOUS", abi.SITE_CONTIGUOUS)]
    facts += [("CPU_SITE_FOR_STORES", abi.SITE_FOR_STORES)]
    facts += [("CPU_SITE_UNUSED_SHIFT", abi.SITE_UNUSED_SHIFT)]
    facts += [("CPU_SHARED_WINDOW", abi.SHARED_WINDOW), ("CPU_LOCAL_WINDOW", abi.LOCAL_WINDOW)]
    facts += [("CPU_STATE(CPU_STATE_YIELD, 7)", abi.state(abi.YIELD, 7))]
    lines = [f'_Static_assert({what} == {value}, "{what.replace(chr(34), "")}");' for what, value in facts]
    source = tmp_path / "abi.c"
    source.write_text("\n".join(['#include "engine/running.h"', *lines, ""]))
    done = subprocess.run(
        ["cc", "-std=gnu11", "-fsyntax-only", f"-I{CPU}", str(source)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_every_helper_that_is_called_exists() -> None:
    defined = set()
    for path in (CPU / "engine").rglob("*.c"):
        text = path.read_text()
        defined |= set(re.findall(r"^CPU_HELPER [\w *]+?\*?(cupola_\w+)\(", text, re.MULTILINE))
    called = set()
    for path in Path(abi.__file__).parent.rglob("*.py"):
        called |= set(re.findall(r"@(cupola_\w+)\(", path.read_text()))
    assert called - defined == set()
