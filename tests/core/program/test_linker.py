"""Linking. NVRTC and nvJitLink are needed; machine code is run where it says something."""

from __future__ import annotations

import gc
import pickle
import threading
import weakref
from dataclasses import fields

import numpy as np
import pytest

from cupola import (
    CUDAError,
    LaunchConfig,
    Linker,
    LinkerOptions,
    ObjectCode,
    PinnedMemoryResource,
    Program,
    launch,
)
from cupola.bindings.nvjitlink import nvJitLinkError
from cupola.core.program import _linker, _linker_options
from cupola.typing import CompilerBackendType

MAIN = """
extern "C" __device__ int helper(int);
extern "C" __global__ void k(int* x, float f) { x[0] = helper(x[1]) + (int)f; }
"""
HELPER = 'extern "C" __device__ int helper(int a) { return 3 * a; }'
ALONE = 'extern "C" __global__ void k(int* x, float f) { x[0] = 3 * x[1] + (int)f; }'

with_nvjitlink = pytest.mark.skipif(Linker.which_backend() != "nvJitLink", reason="nvJitLink is not installed")


@pytest.fixture(scope="module")
def arch():
    from cupola import Device

    return f"sm_{Device(0).arch}"


@pytest.fixture(scope="module")
def build(arch):
    """Compile a source to a kind of code that can be linked; each once."""
    made: dict[tuple[str, str], ObjectCode] = {}

    def build(source: str, target: str) -> ObjectCode:
        if (source, target) not in made:
            program = Program(source, "c++", {"arch": arch, "relocatable_device_code": True})
            made[source, target] = program.compile(target)
        return made[source, target]

    return build


@pytest.fixture
def by_driver(monkeypatch, device):
    monkeypatch.setattr(_linker, "_backend", CompilerBackendType.DRIVER)


def run(code, stream):
    with PinnedMemoryResource().allocate(8, stream=stream) as buffer:
        values = np.from_dlpack(buffer).view(np.int32)
        values[:] = [0, 14]
        launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("k"), buffer, np.float32(2))
        stream.sync()
        return int(values[0])


@with_nvjitlink
class TestNvJitLink:
    def test_ltoir(self, stream, build, arch):
        linker = Linker(
            build(MAIN, "ltoir"), build(HELPER, "ltoir"),
            options=LinkerOptions(name="both", arch=arch, link_time_optimization=True),
        )  # fmt: skip
        code = linker.link("CUBIN")
        assert (code.name, code.code_type, code.symbol_mapping) == ("both", "cubin", {})
        assert run(code, stream) == 44
        linker.close()
        assert run(pickle.loads(pickle.dumps(code)), stream) == 44

    def test_ltoir_to_ptx(self, stream, build, arch):
        options = {"arch": arch, "link_time_optimization": True, "ptx": True}
        code = Linker(build(MAIN, "ltoir"), build(HELPER, "ltoir"), options=options).link("ptx")
        assert code.code_type == "ptx" and b".entry k" in code.code
        assert run(code, stream) == 44

    def test_ltoir_in_a_fat_binary(self, stream, build, arch):
        nvfatbin = pytest.importorskip("cupola.bindings.nvfatbin")
        helper = build(HELPER, "ltoir").code
        handle = nvfatbin.create(None, 0)
        nvfatbin.add_ltoir(handle, helper, len(helper), arch.removeprefix("sm_"), "helper", "")
        image = bytearray(nvfatbin.size(handle))
        nvfatbin.get(handle, image)
        nvfatbin.destroy(handle)
        options = LinkerOptions(arch=arch, link_time_optimization=True)
        code = Linker(build(MAIN, "ltoir"), ObjectCode.from_fatbin(bytes(image)), options=options).link("cubin")
        assert run(code, stream) == 44

    @pytest.mark.parametrize("target", ["ptx", "cubin"])
    def test_one_input(self, stream, build, arch, target):
        code = Linker(build(ALONE, target), options={"arch": arch}).link("cubin")
        assert run(code, stream) == 44

    @pytest.mark.parametrize("target", ["ptx", "ltoir"])
    def test_files(self, stream, build, arch, tmp_path, target):
        path = tmp_path / f"alone.{target}"
        path.write_bytes(build(ALONE, target).code)
        source = getattr(ObjectCode, f"from_{target}")(path)
        options = {"arch": arch, "link_time_optimization": target == "ltoir"}
        assert run(Linker(source, options=options).link("cubin"), stream) == 44

    def test_bytearray(self, stream, build, arch):
        source = ObjectCode.from_ptx(bytearray(build(ALONE, "ptx").code))
        assert run(Linker(source, options={"arch": arch}).link("cubin"), stream) == 44

    def test_types_of_parameters_are_kept(self, stream, build, arch):
        code = Linker(build(ALONE, "cubin"), options={"arch": arch}).link("cubin")
        with PinnedMemoryResource().allocate(8, stream=stream) as buffer:
            values = np.from_dlpack(buffer).view(np.int32)
            values[:] = 0
            launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("k"), buffer, 5)
            stream.sync()
            assert values[0] == 5

    @pytest.mark.parametrize("main", ["ptx", "cubin", "ltoir"])
    @pytest.mark.parametrize("helper", ["ptx", "cubin", "ltoir"])
    def test_mixed_inputs_run(self, stream, build, arch, main, helper):
        options = {"arch": arch, "link_time_optimization": "ltoir" in (main, helper)}
        code = Linker(build(MAIN, main), build(HELPER, helper), options=options).link("cubin")
        assert code.code.startswith(b"\x7fELF")
        assert run(code, stream) == 44
        assert run(pickle.loads(pickle.dumps(code)), stream) == 44

    @pytest.mark.parametrize("inputs", [(ALONE,), (MAIN, HELPER)], ids=["one", "two"])
    def test_older_ptx_becomes_code_of_the_device(self, stream, arch, inputs):
        options = {"arch": "compute_80", "relocatable_device_code": True}
        codes = [Program(source, "c++", options).compile("ptx") for source in inputs]
        assert run(Linker(*codes, options={"arch": arch}).link("cubin"), stream) == 44

    @pytest.mark.cpu_only
    def test_machine_code_without_ptx_is_for_gpus(self, stream, build, arch):
        bare = build(HELPER, "cubin").code
        bare = ObjectCode.from_cubin(bare[: bare.index(b"cupolaPT")])
        code = Linker(build(MAIN, "ptx"), bare, options={"arch": arch}).link("cubin")
        with pytest.raises(CUDAError, match="holds machine code for a GPU only"):
            code.get_kernel("k")

    def test_undefined_symbols(self, build, arch):
        linker = Linker(build(MAIN, "ptx"), options={"arch": arch})
        with pytest.raises(nvJitLinkError, match="nvJitLink error log: .*[Uu]ndefined reference to 'helper'"):
            linker.link("cubin")
        assert "helper" in linker.get_error_log()
        with pytest.raises(RuntimeError, match="links once"):
            linker.link("cubin")

    def test_handles_stay_in_their_threads(self, stream, build, arch):
        """nvJitLink crashes when a thread destroys or uses what another one has made."""

        def in_thread(work):
            results = []
            thread = threading.Thread(target=lambda: results.append(work()))
            thread.start()
            thread.join()
            return results[0]

        linkers = [Linker(build(ALONE, "ltoir"), options={"arch": arch, "link_time_optimization": True})]
        while len(linkers) < 40:
            linkers.append(Linker(build(ALONE, "ptx"), options={"arch": arch}))
        others = in_thread(lambda: [Linker(build(ALONE, "ptx"), options={"arch": arch}) for _ in range(40)])
        for linker in linkers[20:]:
            in_thread(linker.close)
        others[20:] = []
        codes = [in_thread(lambda linker=linker: linker.link("cubin")) for linker in linkers[:3]]
        codes += [linker.link("cubin") for linker in others[:3]]
        del linkers, others
        gc.collect()
        for _ in range(10):
            codes.append(Linker(build(ALONE, "ptx"), options={"arch": arch}).link("cubin"))
        assert {run(code, stream) for code in codes} == {44}

    def test_bad_inputs(self, arch):
        with pytest.raises(nvJitLinkError, match="nvJitLink error log"):
            Linker(ObjectCode.from_ptx(b"no PTX"), options={"arch": arch})
        with pytest.raises(nvJitLinkError, match="no such file"):
            Linker(ObjectCode.from_ptx("/no/such/file"), options={"arch": arch})

    def test_bad_options(self, build):
        with pytest.raises(nvJitLinkError, match=r"UNRECOGNIZED_OPTION \(1\)\nthe options were -arch=sm_90 -O2"):
            Linker(build(ALONE, "ptx"), options={"arch": "sm_90", "optimization_level": 2})

    def test_logs(self, build, arch):
        options = {"arch": arch, "link_time_optimization": True, "verbose": True, "time": True}
        linker = Linker(build(ALONE, "ltoir"), options=options)
        assert linker.get_error_log() == ""
        linker.link("cubin")
        assert "registers" in linker.get_info_log() and linker.get_error_log() == ""
        said = linker.get_info_log()
        linker.close()
        assert linker.get_info_log() == said

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({"max_register_count": 32}, None),
            ({"optimization_level": 0}, None),
            ({"optimization_level": 3}, None),
            ({"debug": True}, None),
            ({"lineinfo": True}, None),
            ({"ftz": True}, ".ftz.f32"),
            ({"prec_div": False, "ftz": False}, "div.full.f32"),
            ({"prec_div": True}, "div.rn.f32"),
            ({"prec_sqrt": False}, "sqrt."),
            ({"prec_sqrt": True}, "sqrt.rn"),
            ({"fma": False}, "add"),
            ({"fma": True}, "fma.rn"),
            ({"kernels_used": ("k",)}, ".entry k"),
            ({"variables_used": "v", "optimize_unused_variables": True}, ".entry k"),
            ({"ptxas_options": ["-v", "-O1"]}, None),
            ({"split_compile": 1, "split_compile_extended": 1}, None),
            ({"no_cache": True}, None),
        ],
        ids=repr,
    )
    def test_options_are_passed_on(self, build, arch, options, expected):
        source = """extern "C" __global__ void k(float* x) { x[0] = sqrtf(x[1] / x[2]) * x[3] + x[4]; }
                    extern "C" __global__ void other() {}"""
        base = {"arch": arch, "link_time_optimization": True}
        assert len(Linker(build(source, "ltoir"), options={**base, **options}).link("cubin").code) > 500
        text = Linker(build(source, "ltoir"), options={**base, "ptx": True, **options}).link("ptx").code.decode()
        assert ".entry k" in text
        assert expected is None or expected in text
        assert (".entry other" in text) == ("kernels_used" not in options)


class TestDriver:
    def test_one_input(self, by_driver, stream, build, arch):
        options = LinkerOptions(
            arch=arch, max_register_count=32, optimization_level=3, lineinfo=True, verbose=True, no_cache=True
        )
        linker = Linker(build(ALONE, "ptx"), options=options)
        assert int(linker.handle) and linker.which_backend() == "driver"
        assert run(linker.link("cubin"), stream) == 44
        linker.close()
        assert linker.handle == 0 and linker.get_error_log() == ""

    @pytest.mark.parametrize("targets", [("ptx", "ptx"), ("cubin", "ptx"), ("ptx", "cubin"), ("cubin", "cubin")])
    def test_two_inputs(self, by_driver, stream, build, arch, targets):
        linker = Linker(build(MAIN, targets[0]), build(HELPER, targets[1]), options={"arch": arch, "verbose": True})
        code = linker.link("cubin")
        assert code.code.startswith(b"\x7fELF")
        assert run(code, stream) == 44
        assert run(pickle.loads(pickle.dumps(code)), stream) == 44

    def test_undefined_symbols(self, by_driver, build, arch):
        linker = Linker(build(MAIN, "ptx"), options={"arch": arch})
        with pytest.raises(CUDAError, match="(?s)cuLinkComplete.*[Uu]ndefined reference to 'helper'"):
            linker.link("cubin")

    def test_multiple_definitions(self, by_driver, build, arch):
        with pytest.raises(CUDAError, match="(?s)cuLink.*[Mm]ultiple definition.* '?helper"):
            Linker(build(HELPER, "ptx"), build(HELPER + " ", "ptx"), options={"arch": arch}).link("cubin")

    def test_file(self, by_driver, stream, build, arch, tmp_path):
        path = tmp_path / "alone.ptx"
        path.write_bytes(build(ALONE, "ptx").code)
        assert run(Linker(ObjectCode.from_ptx(path), options={"arch": arch}).link("cubin"), stream) == 44

    def test_refuses(self, by_driver, build, arch):
        with pytest.raises(ValueError, match="does not take ltoir code"):
            Linker(ObjectCode.from_ltoir(b"x"), options={"arch": arch})
        with pytest.raises(ValueError, match="does not have time, split_compile: install"):
            Linker(build(ALONE, "ptx"), options={"arch": arch, "time": True, "split_compile": 2})
        with pytest.warns(DeprecationWarning, match="ignores ftz, kernels_used"):
            Linker(build(ALONE, "ptx"), options={"arch": arch, "ftz": True, "kernels_used": "k"})
        with pytest.raises(ValueError, match="arch must look like"):
            Linker(build(ALONE, "ptx"), options={"arch": "hopper"})

    def test_errors_carry_the_log(self, by_driver, arch):
        with pytest.raises(CUDAError, match="(?s)cuLink.*Linker error log: "):
            Linker(ObjectCode.from_ptx(b".version 8.0\n.target sm_90\n.entry k() { bogus; }"), options={"arch": arch})


PARTS = (
    r"""
template <typename T> __device__ __noinline__ T twice(T x) { return 2 * x; }
static __device__ int calls;
extern __device__ int table[4];
extern __constant__ int factor;
extern __shared__ int scratch[];
extern "C" __device__ int pick(int i, int* from);
extern "C" __global__ void k(int* x, float f) {
    ++calls;
    scratch[0] = twice(x[1]);
    x[0] = pick(1, table) + factor + scratch[0] + calls + (int)f;
}
""",
    r"""
template <typename T> __device__ __noinline__ T twice(T x) { return 2 * x; }
static __device__ int calls;
__device__ int table[4] = {100, 200, 300, 400};
__constant__ int factor = 1000;
extern "C" __device__ __noinline__ int pick(int i, int* from) {
    calls += 50;
    return from[twice(i)] + calls;
}
extern "C" __global__ void count(int* x) { *x = calls; }
""",
)


CLASSES = [
    f"""
struct Base{n} {{ __device__ virtual int f(int a) {{ return a; }} }};
struct Derived{n} : Base{n} {{ __device__ int f(int a) override; }};
__device__ int Derived{n}::f(int a) {{ return a + 1; }}
extern __device__ int* far{1 - n};
__device__ int near{n};
__device__ int* far{n} = &near{n};
__device__ __noinline__ int use{n}(Base{n}* b) {{ return b->f(3); }}
static __shared__ int buffer[4];
extern "C" __global__ void k{n}(int* x) {{
    Derived{n} d;
    buffer[0] = use{n}(&d);
    printf("%d", buffer[0]);
    assert(x);
    *x = buffer[0] + *far{1 - n};
}}
"""
    for n in range(2)
]


class TestSeparateCompilation:
    """Functions, variables, constants, templates and static names of two programs."""

    @pytest.fixture(params=["default", "driver"])
    def link(self, request, monkeypatch, arch):
        if request.param == "driver":
            monkeypatch.setattr(_linker, "_backend", CompilerBackendType.DRIVER)

        def link(parts, target):
            options = {"arch": arch, "relocatable_device_code": True, "lineinfo": True}
            codes = [
                Program(part, "c++", {**options, "name": f"part{n}.cu"}).compile(target) for n, part in enumerate(parts)
            ]
            return Linker(*codes, options={"arch": arch}).link("cubin")

        return link

    @pytest.mark.parametrize("target", ["ptx", "cubin"])
    def test_names_across_programs(self, stream, link, target):
        code = link(PARTS, target)
        with PinnedMemoryResource().allocate(8, stream=stream) as buffer:
            values = np.from_dlpack(buffer).view(np.int32)
            values[:] = [0, 14]
            config = LaunchConfig(grid=1, block=1, shmem_size=16)
            launch(stream, config, code.get_kernel("k"), buffer, np.float32(2))
            stream.sync()
            assert values[0] == (300 + 50) + 1000 + 28 + 1 + 2
            launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("count"), buffer)
            stream.sync()
            assert values[0] == 50

    @with_nvjitlink
    @pytest.mark.cpu_only
    @pytest.mark.parametrize("parts", [PARTS, CLASSES], ids=["names", "classes"])
    def test_the_result_is_proper_ptx(self, link, arch, parts):
        """NVIDIA's assembler takes what the CPU device has linked."""
        code = link(parts, "ptx").code
        length = int.from_bytes(code[-16:-8], "little")
        ptx = ObjectCode.from_ptx(code[-16 - length : -16])
        assert Linker(ptx, options={"arch": arch}).link("cubin").code.startswith(b"\x7fELF")

    @pytest.mark.cpu_only
    def test_a_fault_in_the_second_program_names_its_line(self, run_python):
        done = run_python("""
from cupola import CUDAError, Device, LaunchConfig, Linker, Program, launch
device = Device(0)
device.set_current()
stream = device.create_stream()
options = {"arch": f"sm_{device.arch}", "relocatable_device_code": True, "lineinfo": True}
main = 'extern "C" __device__ void put(int*); extern "C" __global__ void k(int* x) { put(x); }'
put = '\\n\\n\\nextern "C" __device__ __noinline__ void put(int* x) {\\n *x = 1;\\n}'
codes = [Program(text, "c++", {**options, "name": name}).compile("ptx") for name, text in
         (("main.cu", main), ("put.cu", put))]
code = Linker(*codes, options={"arch": options["arch"]}).link("cubin")
launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("k"), 4096)
try:
    stream.sync()
except CUDAError as error:
    print(error)
""")
        assert "put.cu:5" in done.stdout, done.stdout + done.stderr


class TestObject:
    @pytest.mark.parametrize(
        ("inputs", "error", "text"),
        [
            ((), ValueError, "nothing to link"),
            ((b"text",), TypeError, "takes ObjectCode, not bytes"),
            ((None,), TypeError, "takes ObjectCode, not NoneType"),
        ],
    )
    def test_bad_inputs(self, inputs, error, text):
        with pytest.raises(error, match=text):
            Linker(*inputs, options={"arch": "sm_90"})

    def test_bad_options(self, build):
        with pytest.raises(TypeError, match="LinkerOptions has no option 'arhc'; did you mean 'arch'"):
            Linker(build(ALONE, "ptx"), options={"arhc": "sm_90"})
        with pytest.raises(TypeError, match="LinkerOptions, a dict"):
            Linker(build(ALONE, "ptx"), options=3)

    def test_life(self, build, arch):
        linker = Linker(build(ALONE, "ptx"), options={"arch": arch, "name": "mine"})
        assert weakref.ref(linker)() is linker and linker == linker and hash(linker)
        assert repr(linker) == "<Linker name='mine' of 1 inputs>"
        assert int(linker.handle) and not linker.is_closed
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(linker)
        linker.close()
        linker.close()
        assert linker.is_closed and linker.handle == 0
        for use in (lambda: linker.link("cubin"), linker.get_info_log, linker.get_error_log):
            with pytest.raises(RuntimeError, match="Linker has been closed"):
                use()

    def test_logs_stay_after_a_link(self, build, arch):
        linker = Linker(build(ALONE, "ptx"), options={"arch": arch})
        linker.link("cubin")
        linker.close()
        assert linker.get_info_log() == linker.get_error_log() == ""

    @pytest.mark.parametrize("target", ["ltoir", None, "fatbin"])
    def test_bad_targets(self, build, arch, target):
        with pytest.raises(ValueError, match="Unsupported target type"):
            Linker(build(ALONE, "ptx"), options={"arch": arch}).link(target)

    def test_ptx_needs_the_option(self, build, arch):
        with pytest.raises(ValueError, match=r"link_time_optimization=True, ptx=True"):
            Linker(build(ALONE, "ptx"), options={"arch": arch}).link("ptx")

    def test_falls_back_once(self, monkeypatch):
        def missing():
            raise RuntimeError("no such library\nlooked everywhere")

        monkeypatch.setattr(_linker, "_backend", None)
        monkeypatch.setattr(_linker, "require_nvjitlink", missing)
        with pytest.warns(RuntimeWarning, match=r"the driver links, because .*\(no such library\)"):
            assert Linker.which_backend() is CompilerBackendType.DRIVER
        assert Linker.which_backend() == "driver"


class TestOptions:
    def flags(self, **options):
        return [flag.decode() for flag in LinkerOptions(arch="sm_90", **options).as_bytes()]

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({}, []),
            ({"time": False, "debug": False, "no_cache": 0}, []),
            ({"time": True, "verbose": True}, ["-time", "-verbose"]),
            ({"link_time_optimization": True, "ptx": 1}, ["-lto", "-ptx"]),
            ({"optimization_level": 0, "debug": True, "lineinfo": True}, ["-O0", "-g", "-lineinfo"]),
            ({"ftz": True, "prec_div": False}, ["-ftz=1", "-prec-div=0"]),
            ({"prec_sqrt": True, "fma": False}, ["-prec-sqrt=1", "-fma=0"]),
            ({"kernels_used": "a", "variables_used": ("b", "c")},
             ["-kernels-used=a", "-variables-used=b", "-variables-used=c"]),
            ({"optimize_unused_variables": True}, ["-optimize-unused-variables"]),
            ({"ptxas_options": ["-v", "-O1"]}, ["-Xptxas=-v", "-Xptxas=-O1"]),
            ({"split_compile": 0, "split_compile_extended": 2}, ["-split-compile=0", "-split-compile-extended=2"]),
            ({"max_register_count": 64, "no_cache": True}, ["-maxrregcount=64", "-no-cache"]),
        ],
        ids=repr,
    )  # fmt: skip
    @with_nvjitlink
    def test_flags(self, options, expected):
        assert self.flags(**options) == ["-arch=sm_90", *expected]

    def test_every_option_has_a_flag(self):
        named = {row[0] for row in _linker_options.NVJITLINK}
        assert {field.name for field in fields(LinkerOptions)} - {"name", "numba_debug"} == named

    @with_nvjitlink
    @pytest.mark.parametrize("value", [b"x", 1.5, {"a"}])
    def test_lists_are_never_dropped_silently(self, value):
        with pytest.raises(TypeError, match="kernels_used"):
            self.flags(kernels_used=value)

    @with_nvjitlink
    def test_architecture_of_the_device(self, device):
        options = LinkerOptions()
        assert options.as_bytes("NVJITLINK") == [f"-arch=sm_{device.arch}".encode()] and options.arch is None

    def test_bad(self):
        with pytest.raises(ValueError, match="nvjitlink"):
            LinkerOptions(arch="sm_90").as_bytes("driver")
        with pytest.raises(TypeError, match="backend must be a str, got NoneType"):
            LinkerOptions(arch="sm_90").as_bytes(None)
        with pytest.raises(TypeError, match="name"):
            LinkerOptions(name=None)
        with pytest.warns(DeprecationWarning, match="numba_debug"):
            LinkerOptions(numba_debug=True)

    def test_value_semantics(self):
        options = LinkerOptions(arch="sm_80", ftz=True)
        assert options == LinkerOptions(arch="sm_80", ftz=True) != LinkerOptions(arch="sm_90")
        assert pickle.loads(pickle.dumps(options)) == options
        assert "name='<default linker>'" in repr(options)
        with pytest.raises(TypeError):
            hash(options)
