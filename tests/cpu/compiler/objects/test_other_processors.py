"""Machine code for other processors than this computer's: those without AVX, those with AVX2, and aarch64."""

from __future__ import annotations

import os
import shutil
import struct
import sys
import sysconfig
from pathlib import Path

import pytest

from benchmarks.cpu_device import kernels
from cupola.cpu.compiler.emit import bodies
from cupola.cpu.compiler.errors import ImageError
from cupola.cpu.compiler.modules import load_image
from cupola.cpu.compiler.objects import machine, processor
from tests import processes

ROOT = Path(__file__).parents[4]
BENCHMARKS = [value for value in vars(kernels).values() if isinstance(value, kernels.Benchmark)]
pytestmark = pytest.mark.cpu_only


@pytest.fixture
def choose(monkeypatch: pytest.MonkeyPatch):
    """The processor for a value of CUPOLA_CPU_FEATURES."""

    def chosen(wish: str) -> processor.Processor:
        monkeypatch.setenv("CUPOLA_CPU_FEATURES", wish)
        return processor.processor.__wrapped__(machine.llvm())

    return chosen


on_x86 = pytest.mark.skipif(processor.platform.machine() not in processor.X86, reason="levels of x86-64")


def test_choices(choose) -> None:
    binding = machine.llvm()
    assert choose("native").name == binding.get_host_cpu_name()
    assert not choose("baseline").instructions & {"avx", "avx2", "avx512f"} and choose("baseline").features == ""
    with pytest.raises(ImageError, match="must be one of native, baseline.* not 'avx3'"):
        choose("avx3")


@on_x86
def test_levels(choose, monkeypatch: pytest.MonkeyPatch) -> None:
    class Without:
        """A computer that has nothing newer than SSE 4.2."""

        @staticmethod
        def get_host_cpu_name() -> str:
            return "nehalem"

        @staticmethod
        def get_host_cpu_features() -> Without:
            return Without()

        @staticmethod
        def flatten() -> str:
            return ",".join(f"+{name}" for name in processor._LEVELS["x86-64-v2"]) + ",-avx2"

    monkeypatch.setattr(machine, "llvm", Without)
    assert choose("x86-64-v2").name == "x86-64-v2"
    with pytest.raises(ImageError, match="that this computer lacks: avx, avx2, bmi"):
        choose("x86-64-v3")


# What the code generator does in other ways: halves, and lanes that load, store or fault by themselves, as many as it
# chooses for the processor.
SAMPLE = [
    *["tests/cpu/compiler/objects/test_half_conversions.py", "tests/cpu/engine/memory/test_scattered.py"],
    *["-k", "not (independent or narrow or scalar or large)"],
]


@on_x86
@pytest.mark.parametrize("level", ["baseline", "x86-64-v3"])
def test_a_part_of_the_suite(level: str) -> None:
    if level != "baseline" and "avx2" not in processor.processor(machine.llvm()).instructions:
        pytest.skip("this computer has no AVX2")
    environment = {**os.environ, "CUPOLA_CPU_FEATURES": level, "CUPOLA_DEVICE": "cpu"}
    environment.pop("CUPOLA_CHECK", None)  # nobody would look at what is found there
    done = processes.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *SAMPLE],
        cwd=ROOT,
        env=environment,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert " passed" in done.stdout


# --- aarch64 ----------------------------------------------------------------------------------------------

AARCH64 = "aarch64-unknown-linux-gnu"
EM_AARCH64, SHT_SYMTAB = 183, 2


@pytest.fixture(scope="module")
def aarch64():
    """LLVM's target machine for any aarch64 computer."""
    binding = machine.llvm()
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    target = binding.Target.from_triple(AARCH64)
    return target.create_target_machine(cpu="generic", features="", opt=2, reloc="pic")


def undefined_symbols(elf: bytes) -> set[str]:
    """What object code wants from others (ELF-64)."""
    offset, size, count = struct.unpack_from("<Q", elf, 40)[0], *struct.unpack_from("<HH", elf, 58)
    sections = [struct.unpack_from("<IIQQQQII", elf, offset + i * size) for i in range(count)]
    found = set()
    for _, kind, _, _, start, length, link, _ in sections:
        for at in range(start, start + length, 24) if kind == SHT_SYMTAB else ():
            name, _, _, section = struct.unpack_from("<IBBH", elf, at)
            begin = sections[link][4] + name
            if section == 0 and name:
                found.add(elf[begin : elf.index(b"\0", begin)].decode())
    return found


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda benchmark: benchmark.name)
def test_kernels_compile_for_aarch64(device, aarch64, monkeypatch: pytest.MonkeyPatch, benchmark) -> None:
    from cupola import Program

    monkeypatch.setattr(machine, "_instructions", frozenset)  # of x86-64
    text = Program(benchmark.cuda, "c++", {"arch": f"sm_{device.arch}"}).compile("ptx").code
    module = load_image(bytes(text))
    x, y, z = (*benchmark.block, 1, 1)[:3]
    ir = bodies.emit_body(module.facts(0, (x, y, z))).ir
    assert "asm" not in ir and "llvm.x86" not in ir
    code = bytes(aarch64.emit_object(machine.optimised(ir, aarch64)))
    assert struct.unpack_from("<H", code, 18) == (EM_AARCH64,)
    helpers = {name for name in undefined_symbols(code) if not name.startswith("cupola_")}
    assert helpers <= {"memcpy", "memset", "_GLOBAL_OFFSET_TABLE_"}


@pytest.mark.skipif(
    shutil.which("aarch64-linux-gnu-gcc") is None, reason="no C compiler for aarch64 (gcc-aarch64-linux-gnu)"
)
def test_the_runtime_compiles_for_aarch64(tmp_path: Path) -> None:
    """All of it without warnings, and without calls of libatomic, which need not be installed."""
    source = ROOT / "src" / "cupola"
    includes = [f"-I{source / 'bindings' / 'include'}", f"-I{sysconfig.get_path('include')}"]
    for file in sorted((source / "cpu" / "runtime").glob("*.c")):
        command = ["aarch64-linux-gnu-gcc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", *includes]
        made = tmp_path / f"{file.stem}.o"
        processes.run([*command, "-c", "-o", str(made), str(file)], check=True)
        assert not {name for name in undefined_symbols(made.read_bytes()) if name.startswith("__atomic")}, file
