"""``cupola compile``: what it writes, shows, and says of what does not compile."""

from __future__ import annotations

import json
import subprocess

import pytest

from cupola.cli import listing, main

SOURCE = """__device__ float square(float v) { return v * v; }

extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * square(x[i]) + y[i];
}
template <typename T> __global__ void fill(T* x, T a) { x[threadIdx.x] = a + T(OFFSET); }
"""

# What `nvdisasm -g -c` printed of a kernel, cut short.
SASS = """\t.target\tsm_90

\t.section\t.text.saxpy,"ax",@progbits
\t.align\t128
        .global         saxpy
.text.saxpy:
\t//## File "/tmp/saxpy.cu", line 3
        /*0000*/                   LDC R1, c[0x0][0x28] ;
\t//## File "/tmp/saxpy.cu", line 4
        /*0010*/                   S2R R0, SR_TID.X ;
\t//## File "/tmp/other.cuh", line 1
        /*0020*/              @!P0 EXIT ;
.L_x_1:
\t//## File "/tmp/saxpy.cu", line 5 inlined at "/tmp/saxpy.cu", line 6
        /*0030*/                   EXIT ;
        /*0040*/                   NOP;
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "saxpy.cu").write_text(SOURCE)
    (tmp_path / "wrong.cu").write_text("__global__ void wrong() { no_such_name(); }")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_machine_code_and_its_kernels(folder, capsys):
    assert main(["compile", "saxpy.cu", "-D", "OFFSET=1", "--kernel", "fill<double>"]) == 0
    out = capsys.readouterr().out
    assert "saxpy.cu -> saxpy.cubin" in out and "registers" in out and "\x1b" not in out
    assert [line.split()[0] for line in out.splitlines()[2:]] == ["_Z4fillIdEvPT_S0_", "saxpy"]
    assert (folder / "saxpy.cubin").read_bytes().startswith(b"\x7fELF")


def test_several_files_some_of_which_fail(folder, capsys):
    arguments = ["compile", "saxpy.cu", "wrong.cu", "missing.cu", "--to", "ltoir", "-o", "made", "-DOFFSET"]
    assert main([*arguments, "--json", "--arch", "sm_80"]) == 1
    good, wrong, missing = json.loads(capsys.readouterr().out)["files"]
    assert good["output"] == "made/saxpy.ltoir" and (folder / "made" / "saxpy.ltoir").stat().st_size == good["size"]
    assert "wrong.cu(1): error: identifier" in wrong["error"] and "output" not in wrong
    assert missing["error"] == "cannot read missing.cu: No such file or directory"
    assert main(arguments) == 1
    assert "error: cannot read missing.cu" in capsys.readouterr().err


def test_ptx_beside_the_source(folder, capsys):
    assert main(["compile", "saxpy.cu", "--show", "ptx", "-DOFFSET=0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert not list(folder.glob("*.ptx"))  # nothing is written unasked
    beside = {line.split("|")[0].strip(): line.split("|")[1].strip() for line in lines if "|" in line}
    assert beside["5      if (i < n)"].startswith("setp.")
    assert beside["1  __device__ float square(float v) { return v * v; }"].startswith("mul.f32")
    assert main(["compile", "saxpy.cu", "--show", "ptx", "--json", "-DOFFSET=0", "-o", "x.ptx"]) == 0
    (file,) = json.loads(capsys.readouterr().out)["files"]
    assert any(part["line"] == 6 and "st.global" in " ".join(part["code"]) for part in file["lines"])
    assert (folder / "x.ptx").read_text().lstrip().startswith("//")


def test_machine_code_beside_the_source(folder, capsys, monkeypatch):
    parts = [(part.line, part.code) for part in listing.parse_sass(SASS).parts]
    assert parts == [
        (0, ["saxpy"]), (3, ["    LDC R1, c[0x0][0x28]"]), (4, ["    S2R R0, SR_TID.X"]),
        (0, ["    @!P0 EXIT", ".L_x_1:"]), (5, ["    EXIT"]),
    ]  # fmt: skip
    given = []

    def disassemble(command, **options):
        given.append(command[:-1])
        return subprocess.CompletedProcess(command, 0, SASS, "")

    monkeypatch.setattr("cupola.cli.listing._find", lambda: "nvdisasm")
    monkeypatch.setattr("subprocess.run", disassemble)
    assert main(["compile", "saxpy.cu", "--show", "sass", "-DOFFSET=0"]) == 0
    assert given == [["nvdisasm", "-g", "-c"]] and "| " + "    S2R R0, SR_TID.X" in capsys.readouterr().out
    monkeypatch.setattr("cupola.cli.listing._find", lambda: None)
    assert main(["compile", "saxpy.cu", "--show", "sass", "-DOFFSET=0"]) == 1
    assert "pip install nvidia-cuda-nvdisasm" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--show", "sass", "--to", "ptx"], "leave --to out"),
        (["--show", "ptx", "--to", "ltoir"], "leave --to out"),
        (["other.cu", "-o", "saxpy.cu"], "--output must be a folder"),
        (["--to", "exe"], "invalid choice"),
    ],
)
def test_what_does_not_go_together(folder, capsys, arguments, text):
    with pytest.raises(SystemExit) as caught:
        main(["compile", "saxpy.cu", *arguments])
    assert caught.value.code == 2 and text in capsys.readouterr().err
