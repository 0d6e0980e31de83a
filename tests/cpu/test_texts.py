"""The text of the line where a kernel fails, and where it stands in a program in Python."""

from __future__ import annotations

import re
import sys

import pytest

from cupola import CUDAError, Device, LaunchConfig, Program, ProgramOptions, compile, launch
from cupola.bindings import driver
from cupola.cpu.reports.texts import text_of
from cupola.utils import FileStreamProgramCache
from tests import processes

pytestmark = pytest.mark.cpu_only

HEAD = r"""
extern "C" __global__ void bad(int* x) {
"""
WHOLE = r"""
extern "C" __global__ void bad(int* x) {
    x[100000] = 1;  // of WHOLE
}
"""
ONE_LINE = 'extern "C" __global__ void bad(int* x) { x[100001] = 1; }'
JOINED = (
    'extern "C" __global__ void bad(int* x) {\n'
    "    x[100002] = 2;  // of JOINED\n"
    "}\n"
)  # fmt: skip
TEMPLATE = """
extern "C" __global__ void bad(%s* x) {
    x[100003] = 3;  // of TEMPLATE
}
"""


def line_with(text: str) -> int:
    with open(__file__) as file:
        return next(number for number, line in enumerate(file, 1) if text in line)


def fault(code) -> list[str]:
    """What is told of the place: the line of CUDA, and its text."""
    stream = Device().create_stream()
    memory = Device().allocate(64, stream=stream)
    launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("bad"), memory)
    with pytest.raises(CUDAError) as caught:
        stream.sync()
    driver.cuDevicePrimaryCtxReset(0)
    Device(0).set_current()
    lines = [line.strip() for line in str(caught.value).splitlines()]
    at = next(number for number, line in enumerate(lines) if line.startswith("at "))
    return lines[at : at + 2]


@pytest.mark.parametrize(
    ("source", "line", "mark"),
    [
        (WHOLE, 3, "// of WHOLE"),
        (ONE_LINE, 1, "x[100001] = 1"),
        (JOINED, 2, "// of JOINED"),
        (TEMPLATE % "int", 3, "// of TEMPLATE"),
        (HEAD + f"    x[{100_000 + 4}] = {4};  // of f-string\n" + "}", 3, "// of f-string"),
        (HEAD + "    int y = 5;\n    " + "x[100005] = y;\n}", 4, "x[100005] = y"),
        (HEAD + "    x[100006] =" + " 6;\n}", 3, ""),
    ],
    ids=["whole", "one line", "joined", "template", "f-string", "pieces", "broken line"],
)
def test_a_string(fresh_device, source, line, mark):
    place, text = fault(Program(source, "c++").compile("cubin"))
    stands = source.splitlines()[line - 1].strip()
    assert place == f"at default_program:{line} in bad"
    if "f-string" in mark:  # whose line has other text in the program
        assert text == stands
    else:
        assert text == (f"{__file__}:{line_with(mark)}: {stands}" if mark else stands)


def test_several_programs_of_one_name(fresh_device):
    first = Program(WHOLE, "c++").compile("cubin")
    Program(JOINED, "c++").compile("cubin")
    assert fault(first)[1].startswith(f"{__file__}:{line_with('// of WHOLE')}: ")


@pytest.mark.parametrize("options", [{}, {"lineinfo": True}, {"name": "bad.cu"}])
def test_code_from_a_cache(fresh_device, tmp_path, options):
    """NVRTC does not get the text then, and its name may be that of a file that is gone."""
    cache = FileStreamProgramCache(tmp_path)
    for _ in range(2):
        assert fault(compile(WHOLE, options=options, cache=cache))[1] == (
            f"{__file__}:{line_with('// of WHOLE')}: x[100000] = 1;  // of WHOLE"
        )
    code = Program(WHOLE, "c++", ProgramOptions(**options)).compile("cubin", cache=cache)
    assert "// of WHOLE" in fault(code)[1]


def test_a_program_that_is_compiled_before_a_device_is_chosen(tmp_path):
    program = tmp_path / "early.py"
    program.write_text(
        f"from cupola import *\nsource = r'''{WHOLE}'''\n"
        "code = Program(source, 'c++', {'arch': 'sm_90'}).compile('cubin')\n"
        "Device().set_current()\nx = Device().full(16, 0, 'int32')\n"
        "code.get_kernel('bad')[1, 1](x)\nDevice().sync()\n"
    )
    done = processes.run([sys.executable, program])
    assert f"\n    {program}:4: x[100000] = 1;" in done.stderr, done.stderr
    assert f"\n  allocated at {program}:9\n  launched at {program}:10\n" in done.stderr


def test_a_file(fresh_device, tmp_path):
    path = tmp_path / "bad.cu"
    path.write_text(WHOLE.replace("WHOLE", "a file"))
    place, text = fault(Program(path.read_text(), "c++", ProgramOptions(name=str(path))).compile("cubin"))
    assert place == f"at {path}:3 in bad" and text == "x[100000] = 1;  // of a file"
    assert text_of(str(path), 99, "") == text_of(str(path) + "x", 3, "") == text_of(None, 1, "") == ("", "")


def test_code_of_another_process(fresh_device, tmp_path):
    """Its text is not known, nor is that of another program of the same name taken for it."""
    path = tmp_path / "code"
    script = (
        "import sys, cupola\ncupola.Device().set_current()\nopen(sys.argv[1], 'wb').write(bytes(cupola.Program(r'''"
        + WHOLE.replace("100000", "200000")
        + "''', 'c++').compile('cubin').code))"
    )
    processes.run([sys.executable, "-c", script, path], check=True)
    Program(WHOLE, "c++").compile("cubin")
    from cupola import ObjectCode

    place, text = fault(ObjectCode.from_cubin(path.read_bytes()))
    assert place == "at default_program:3 in bad" and re.match("PTX line", text)
