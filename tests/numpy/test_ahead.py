"""Kernels that come with the package: the file has what the statements need, and it is used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cupola import _soon
from cupola.numpy import __main__ as command
from cupola.numpy import _ahead, _background, _common, _kernels
from cupola.numpy._kernels import elementwise
from tests import processes
from tests.conftest import on_cpu_device

TOOL = Path(__file__).parents[2] / "tools" / "kernels_ahead.py"


@pytest.mark.unchecked(reason="checked kernels are compiled here, and kernels that do nothing leave memory unwritten")
def test_the_file_has_what_the_statements_need():
    done = processes.run([sys.executable, TOOL, "check"])
    assert done.returncode == 0, done.stdout + done.stderr


EVERYDAY = """
    x[x > 1]; x[places]; x[places] = 0; x[places] = y[places]; x[x > 1] = 0; np.add.at(x, places, 1)
    x[1:] - x[:-1]; m[few]; m[few] = 0; m[:, few]; m[m > 1]; m[m > 1] = 0; m[1:-1, 1:-1] + m[2:, 1:-1]
    m[:, 1].copy(); m.T.copy(); m - row; m - m[:, :1]; m - m.mean(0); m - m.mean(1, keepdims=True)
    (m - m.mean(0)) / m.std(0); np.where(m > 1, m, 0); np.nonzero(x); np.nonzero(m); np.diff(x); np.outer(x, y)
    np.flip(x); np.meshgrid(x, y); np.roll(x, 3); np.repeat(x, 3); np.concatenate([x, y])
    np.concatenate([m, m], 1); np.stack([x, y]); np.stack([x, y], 1); np.tile(m, (2, 2)); np.sort(x)
    np.argsort(x); x[np.argsort(x)]; np.unique(x); np.searchsorted(x, y); np.cumsum(m, 1); np.argmax(m, 1)
    np.tril(m); np.eye(len(x)); np.pad(m, 1); np.vstack([m, m]); np.hstack([m, m]); np.take(x, places)
"""
SHOWN = f"""
import sys
sys.path.insert(0, {str(TOOL.parent)!r})
import kernels_ahead
import cupola.numpy as np
from cupola.numpy import _ahead, _common

for size in (40, 600):
    for char in _common.NUMBERS:
        names = {{
            "np": np, "x": np.full(size, 2, char), "y": np.full(size, 2, char), "m": np.full((6, size), 2, char),
            "row": np.full(size, 2, char), "places": np.zeros(size // 2, int), "few": np.zeros(2, int),
        }}
        for statement in {EVERYDAY!r}.replace("\\n", ";").split(";"):
            def run(statement=statement.strip()):
                if " = " in statement:
                    exec(statement, names)
                elif statement:
                    _common._now(lambda: eval(statement, names))()
            lacks = set(kernels_ahead.needed([run])) - _ahead.known().names
            if lacks:
                print(size, char, statement.strip(), len(lacks))
"""


@pytest.mark.unchecked(reason="checked kernels are compiled here, and kernels that do nothing leave memory unwritten")
def test_everyday_statements_need_no_compiler():
    """With short rows and with long ones, which have kernels of their own."""
    done = processes.run([sys.executable, "-c", SHOWN])
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.fixture
def targets(device, monkeypatch):
    """What is compiled, and to what."""
    seen: list[str] = []
    real = _ahead.compile_to

    def compile_to(target: str, source: str, *, options: dict[str, object]):
        seen.append(target)
        return real(target, source, options=options)

    monkeypatch.setattr(_ahead, "compile_to", compile_to)
    return seen


@pytest.mark.unchecked(reason="checked kernels are compiled here, and kernels that do nothing leave memory unwritten")
def test_a_common_kernel_needs_no_compiler(targets, monkeypatch):
    seen = []
    monkeypatch.setattr(_kernels, "compiled", lambda source, name: seen.append(source))
    elementwise.__wrapped__(("const double v0 = READ(0);", "const double v1 = (double)(v0 + s0);"),
                            "v1", ("d",), ("d",), "cc", -1, "d")  # fmt: skip
    (source,) = seen
    assert _ahead.code(source).code_type == "ptx"
    assert targets == []
    made = _ahead.code(source.replace("v0 + s0", "v0 + s0 * 5"))
    assert targets == [made.code_type] == ["ptx" if on_cpu_device() else "cubin"]


@pytest.mark.unchecked(reason="checked kernels are compiled here, and kernels that do nothing leave memory unwritten")
def test_who_observes_kernels_gets_those_compiled_here(targets, monkeypatch):
    source = 'extern "C" __global__ void nothing() {}\n'

    class Everything:
        def get(self, name: bytes) -> bytes | None:
            if name != _ahead.name_of(source, False):
                return None
            return b".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry nothing()\n{\nret;\n}\n"

    monkeypatch.setattr(_ahead, "known", Everything)
    assert _ahead.code(source).code_type == "ptx"
    assert targets == []
    monkeypatch.setattr(_ahead._provider, "is_observed", lambda: True)
    assert _ahead.code(source).code_type == "cubin"
    assert targets == ["cubin"]


def test_the_cpu_device_has_kernels_with_rolled_loops(targets):
    text = _kernels.file_text("radix.cu")
    assert "#define ON_CPU" not in [line.strip() for line in text.splitlines()]
    assert "#define ON_CPU" in _ahead.for_cpu(text).splitlines()
    source = 'extern "C" __global__ void one(int* x) { *x = 3; }\n//CPU #error not for a GPU\n'
    assert "//CPU" not in _ahead.for_cpu(source)
    if on_cpu_device():
        with pytest.raises(Exception, match="not for a GPU"):
            _ahead.code(source)
    else:
        assert _ahead.code(source).code_type == "cubin"


@pytest.mark.parametrize("text", [str, _ahead.for_cpu])
def test_reductions_of_rows_have_few_barriers(monkeypatch, text):
    """Each takes time and, where machine code is made of it, a place where all threads can stop."""
    sources = []
    monkeypatch.setattr(_kernels, "compiled", lambda source, name: sources.append(text(source)))
    _kernels.reduction.__wrapped__(
        "sum", ("const double v0 = READ(0);",), "v0", ("d",), (), "c", 0, -1, "d", _kernels.ROWS, False
    )
    (ptx,) = [_ahead.known().get(_ahead.name_of(source, False)) for source in sources]
    assert ptx is not None
    assert ptx.count(b"bar.sync") == 2


def test_every_kernel_can_be_read():
    known = _ahead.known()
    assert len(known.names) > 500
    machine_code = []
    for name in known.names:
        ptx = known.get(name)
        if ptx.startswith(b"\x7fELF"):
            machine_code.append(ptx)
            continue
        assert ptx.startswith(b".version 8.0\n.target sm_75\n")
        assert ptx.endswith(b"}\n")
        assert b".entry" in ptx
    assert known.get(b"0" * 16) is None
    assert 0 < len(machine_code) < 200 and not len(machine_code) % len(_ahead.MACHINE_CODE)


@pytest.mark.parametrize(
    ("capability", "driver", "wanted"),
    [
        ((9, 0), 13000, "cubin"), ((8, 9), 13010, "cubin"), ((9, 0), 12090, "ptx"), ((7, 5), 13000, "ptx"),
        ((11, 0), 13000, "ptx"), ((8, 7), 13000, "ptx"),
    ],
)  # fmt: skip
def test_machine_code_is_for_some(monkeypatch, targets, capability, driver, wanted):
    """Of GPUs and drivers."""

    class Some:
        compute_capability = capability

    class Everything:
        def get(self, name: bytes) -> bytes | None:
            return {_ahead.name_of("a", False): b"the PTX", **cubins}.get(name)

    cubins = {_ahead.name_of("a", False, one): b"\x7fELF" + one.encode() for one in _ahead.MACHINE_CODE.values()}
    monkeypatch.setattr(_ahead, "known", Everything)
    monkeypatch.setattr(_ahead, "Device", Some)
    monkeypatch.setattr(_ahead, "_driver_version", lambda: driver)
    monkeypatch.setattr(_ahead._provider, "current", lambda: "gpu")
    monkeypatch.setattr(_ahead._provider, "is_observed", lambda: False)
    made = _ahead.code("a")
    assert made.code_type == wanted and targets == []
    if wanted == "cubin":
        assert bytes(made.code).endswith(b"sm_%d0" % capability[0])


# --- in the background ------------------------------------------------------------------------------------------


def test_the_background_is_asked_once(tmp_path, monkeypatch):
    started = []
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(_background, "_start", lambda: started.append(1))
    for name, value, wanted in (
        ("CUPOLA_NUMPY_AHEAD", "0", False), ("CUPOLA_CPU_CACHE", "0", False), ("CUPOLA_CPU_CACHE", "1", True),
        ("CUPOLA_CPU_CACHE", "1", False),
    ):  # fmt: skip
        monkeypatch.setenv("CUPOLA_NUMPY_AHEAD", "1")
        monkeypatch.setenv(name, value)
        assert _background.begin(_ahead.FILE) is wanted
    monkeypatch.setattr(sys, "executable", "/usr/bin/simulation")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    assert not _background.begin(_ahead.FILE)
    _soon._call()
    assert started == [1]


def test_the_background_runs_the_command(tmp_path, monkeypatch):
    """Without what would make it observe its kernels."""
    seen = []
    monkeypatch.setenv("CUPOLA_CHECK", "race")
    monkeypatch.setattr(subprocess, "run", lambda command, **how: seen.append((command, how)))
    _background._start()
    ((command, how),) = seen
    assert command[-1] == sys.executable
    assert "-m cupola.numpy &" in command[2]
    assert how["env"]["CUPOLA_NUMPY_AHEAD"] == "0"
    assert "CUPOLA_CHECK" not in how["env"]


def test_the_command(device, monkeypatch, capsys):
    ran = []
    monkeypatch.setattr(command, "beginnings", lambda namespace: iter([lambda: ran.append(namespace)] * 2))
    monkeypatch.setattr(sys, "argv", ["cupola.numpy"])
    command.main()
    assert len(ran) == 2
    assert capsys.readouterr().out == f"2 statements of cupola.numpy are compiled, for {device.name}\n"


def test_statements_run(device):
    """Not only with kernels that do nothing."""
    import cupola.numpy as np

    for statement in list(_common._choosing(np, "d"))[::4]:
        statement()
    device.sync()
