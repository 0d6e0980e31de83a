"""Object code, kernels, their attributes and their occupancy."""

from __future__ import annotations

import copy
import ctypes
import gc
import pathlib
import pickle
import weakref

import pytest

from cupola import CUDAError, Kernel, LaunchConfig, ObjectCode, launch
from cupola.core.program import _kernel_attributes

ONE = LaunchConfig(grid=1, block=1)


# Old enough for every driver.
PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry one(.param .u64 x) {
    .reg .b64 %rd<3>;
    .reg .b32 %r<2>;
    ld.param.u64 %rd1, [x];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r1, 1;
    st.global.u32 [%rd2], %r1;
    ret;
}
.visible .entry two(.param .u64 x, .param .f64 y) { ret; }
\0"""


@pytest.fixture
def ptx(device):
    """PTX of a module with the kernels ``one`` and ``two``."""
    return PTX


class TestObjectCode:
    def test_from_bytes(self, device, stream, out, ptx):
        for code in (ptx, bytearray(ptx), ptx.rstrip(b"\0")):
            made = ObjectCode.from_ptx(code, name="mine")
            assert (made.code_type, made.name, made.symbol_mapping) == ("ptx", "mine", {})
            assert made.code is code
            launch(stream, ONE, made.get_kernel("one"), out)
            stream.sync()
            assert ctypes.c_int.from_address(out.handle).value == 1

    def test_from_file(self, device, ptx, tmp_path):
        path = tmp_path / "code.ptx"
        path.write_bytes(ptx)
        for given in (path, str(path)):
            made = ObjectCode.from_ptx(given)
            assert made.code == str(path)
            assert made.get_kernel("one").num_arguments == 1

    def test_missing_file(self, device):
        made = ObjectCode.from_cubin(pathlib.Path("no/such/file.cubin"))
        with pytest.raises(CUDAError, match="no/such/file.cubin"):
            made.get_kernel("one")

    def test_cubin_from_the_compiler(self, module):
        again = ObjectCode.from_cubin(module.code, symbol_mapping=module.symbol_mapping)
        assert again.get_kernel("keep<int>").num_arguments == 2
        assert again != module

    def test_bad_code(self, device):
        with pytest.raises(CUDAError, match="while the ptx code 'mine' was loaded") as caught:
            ObjectCode.from_ptx(b".version 8.0\n.target sm_90\nnonsense;\0", name="mine").get_kernel("k")
        # PTX may wait until a kernel is asked for (lazy loading).
        assert caught.value.call in ("cuLibraryLoadData", "cuLibraryGetKernel")
        for wrong in ([1], 1, None, memoryview(b"x")):
            with pytest.raises(TypeError, match=f"path of a file, not {type(wrong).__name__}"):
                ObjectCode.from_cubin(wrong)
        with pytest.raises(TypeError, match="symbol_mapping must be a dict or None, not list"):
            ObjectCode.from_cubin(b"", symbol_mapping=[("a", "b")])

    def test_missing_kernel_lists_those_there_are(self, device, ptx):
        with pytest.raises(
            CUDAError, match=r"no kernel 'three' in the ptx code, which has: (one, two|two, one)"
        ) as caught:
            ObjectCode.from_ptx(ptx).get_kernel("three")
        assert caught.value.name == "CUDA_ERROR_NOT_FOUND"

    @pytest.mark.parametrize("name", [None, 3, ("one",)])
    def test_name_of_wrong_type(self, device, ptx, name):
        with pytest.raises(TypeError, match="str or bytes"):
            ObjectCode.from_ptx(ptx).get_kernel(name)

    def test_symbol_mapping(self, device, ptx):
        mapping = {"first": b"one"}
        made = ObjectCode.from_ptx(ptx, symbol_mapping=mapping)
        assert made.get_kernel("first").num_arguments == 1 and made.get_kernel(b"two").num_arguments == 2
        mapping["second"] = "two"
        assert made.get_kernel("second").num_arguments == 2
        made.symbol_mapping.clear()
        assert made.symbol_mapping == mapping

    def test_code_for_the_linker(self, device, ptx):
        made = ObjectCode.from_ltoir(ptx)
        with pytest.raises((RuntimeError, CUDAError)):
            made.get_kernel("one")
        assert [getattr(ObjectCode, f"from_{t}")(b"").code_type for t in ("fatbin", "object", "library")] == [
            "fatbin",
            "object",
            "library",
        ]
        with pytest.raises(TypeError):
            ObjectCode.from_ptx(ptx, name=None)

    def test_pickle(self, device, module):
        again = pickle.loads(pickle.dumps(module))
        assert (again.code, again.code_type, again.name) == (module.code, module.code_type, module.name)
        assert again.get_kernel("keep<int>").num_arguments == 2

    def test_handles(self, device, module):
        assert int(module.handle) != 0 and hash(module) == hash(int(module.handle))
        assert repr(module) == f"<ObjectCode handle={int(module.handle):#x} code_type='cubin'>"
        assert int(module.get_module()) != 0

    def test_kernels_keep_the_code(self, device, stream, out, ptx):
        made = ObjectCode.from_ptx(ptx)
        kernel = made.get_kernel("one")
        gone = weakref.ref(made)
        del made
        gc.collect()
        assert gone() is None
        launch(stream, ONE, kernel, out)
        stream.sync()


class TestKernel:
    def test_parameters(self, module):
        kernel = module.get_kernel("add")
        assert kernel.num_arguments == 2
        assert kernel.arguments_info == [(0, 8), (8, 4)]
        assert (kernel.arguments_info[1].offset, kernel.arguments_info[1].size) == (8, 4)
        assert module.get_kernel("nothing").arguments_info == []
        assert module.get_kernel("many").num_arguments == 31

    def test_identity(self, module):
        kernel, same, other = (module.get_kernel(name) for name in ("add", "add", "nothing"))
        assert kernel == same and hash(kernel) == hash(same) == hash(int(kernel.handle))
        assert kernel != other and kernel != 3
        assert repr(kernel) == f"<Kernel handle={int(kernel.handle):#x}>"
        assert weakref.ref(kernel)() is kernel

    @pytest.mark.parametrize("do", [pickle.dumps, copy.copy])
    def test_stays_in_this_process(self, module, do):
        with pytest.raises(TypeError):
            do(module.get_kernel("add"))

    def test_from_handle(self, stream, out, module):
        kernel = module.get_kernel("add")
        again = Kernel.from_handle(int(kernel.handle), module)
        assert again == kernel
        launch(stream, ONE, again, out, 1)
        with pytest.raises(TypeError, match="kernel add takes 2"):
            launch(stream, ONE, again)
        stream.sync()

    @pytest.mark.parametrize("others", [False, True], ids=["no code", "other code"])
    def test_from_handle_keeps_the_code_loaded(self, stream, out, others):
        code = ObjectCode.from_ptx(PTX)
        kernel = code.get_kernel("one")
        again = Kernel.from_handle(int(kernel.handle), ObjectCode.from_ptx(PTX) if others else None)
        del code, kernel
        gc.collect()
        assert again.num_arguments == 1
        launch(stream, ONE, again, out)
        stream.sync()
        once_more = Kernel.from_handle(int(again.handle))
        del again
        launch(stream, ONE, once_more, out)
        stream.sync()

    @pytest.mark.cpu_only  # what a GPU makes of the address is not documented
    def test_from_handle_lets_go(self):
        code = ObjectCode.from_ptx(PTX)
        kernel, handle = Kernel.from_handle(int(code.get_kernel("one").handle)), int(code.get_kernel("one").handle)
        assert kernel.num_arguments == 1
        del code, kernel
        gc.collect()
        with pytest.raises(CUDAError, match="INVALID_HANDLE"):
            Kernel.from_handle(handle).num_arguments  # noqa: B018

    def test_from_handle_refuses(self, module):
        kernel = module.get_kernel("add")
        with pytest.raises(TypeError, match="must be an int"):
            Kernel.from_handle(kernel.handle)
        with pytest.raises(TypeError, match="must be an ObjectCode"):
            Kernel.from_handle(int(kernel.handle), "module")


class TestAttributes:
    ALL = sorted(name for name in vars(_kernel_attributes.KernelAttributes) if not name.startswith("_"))

    @pytest.mark.parametrize("name", ALL)
    def test_number_is_that_of_the_driver(self, name):
        from cupola.bindings import driver

        line = getattr(_kernel_attributes.KernelAttributes, name)
        assert line.number == int(getattr(driver.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name.upper()}"))

    @pytest.mark.parametrize("name", ALL)
    def test_readable(self, module, name):
        value = getattr(module.get_kernel("add").attributes, name)
        flag = isinstance(vars(_kernel_attributes.KernelAttributes)[name], _kernel_attributes.Flag)
        assert type(value) is (bool if flag else int)

    def test_plausible(self, device, module):
        attributes = module.get_kernel("add").attributes
        assert attributes.num_regs > 0 and attributes.max_threads_per_block == 1024
        assert attributes.binary_version == int(device.arch)
        assert attributes.shared_size_bytes == 0

    def test_by_device(self, device, module):
        kernel = module.get_kernel("add")
        attributes = kernel.attributes
        assert kernel.attributes is attributes
        for which in (device, 0, None):
            assert attributes[which].num_regs == attributes.num_regs
        with pytest.raises(ValueError, match="must be within"):
            attributes[10_000]
        with pytest.raises(AttributeError, match="read-only"):
            attributes.num_regs = 3
        with pytest.raises(RuntimeError, match="Kernel.attributes"):
            _kernel_attributes.KernelAttributes()


class TestOccupancy:
    def test_blocks(self, device, module):
        occupancy = module.get_kernel("nothing").occupancy
        assert module.get_kernel("nothing").occupancy is not occupancy
        count = occupancy.max_active_blocks_per_multiprocessor(256, 0)
        assert 1 <= count <= device.properties.max_blocks_per_multiprocessor
        assert count * 256 <= device.properties.max_threads_per_multiprocessor
        assert occupancy.max_active_blocks_per_multiprocessor(256, 40_000) <= count

    def test_block_size(self, device, module):
        best = module.get_kernel("nothing").occupancy.max_potential_block_size(0, 0)
        assert best == (best.min_grid_size, best.max_block_size)
        assert best.max_block_size % 32 == 0 and best.min_grid_size >= device.properties.multiprocessor_count
        limited = module.get_kernel("nothing").occupancy.max_potential_block_size(0, 128)
        assert limited.max_block_size <= 128
        with pytest.raises(TypeError, match="CUoccupancyB2DSize"):
            module.get_kernel("nothing").occupancy.max_potential_block_size(None, 0)

    def test_shared_memory_left(self, device, module):
        left = module.get_kernel("nothing").occupancy.available_dynamic_shared_memory_per_block(2, 128)
        assert 0 < left <= device.properties.max_shared_memory_per_multiprocessor

    def test_bad_numbers(self, module):
        with pytest.raises(CUDAError, match="CUDA_ERROR_INVALID_VALUE"):
            module.get_kernel("nothing").occupancy.max_active_blocks_per_multiprocessor(0, 0)

    def test_clusters(self, device, stream, module):
        if not device.properties.cluster_launch:
            pytest.skip("no clusters")
        occupancy = module.get_kernel("nothing").occupancy
        assert occupancy.max_potential_cluster_size(LaunchConfig(grid=8, block=64), stream=stream) >= 1
        assert occupancy.max_active_clusters(LaunchConfig(grid=8, cluster=2, block=64), stream=stream) >= 1
        for bad in (None, {"grid": 1}):
            with pytest.raises(TypeError):
                occupancy.max_active_clusters(bad, stream=stream)
        with pytest.raises(TypeError):
            occupancy.max_active_clusters(ONE, stream=None)


@pytest.mark.cpu_only
def test_a_library_collected_in_a_thread_that_runs_a_kernel(run_python):
    """Threads that wait for each other are compiled anew while the kernel runs; unloading would wait for it."""
    done = run_python(
        """
import gc, threading
from cupola import Device, LaunchConfig, ObjectCode, Program, launch
from cupola.cpu.compiler import modules
device = Device(0)
device.set_current()
stream = device.create_stream()
SOURCES = [
    'extern "C" __global__ void k0(int* x) { *x += 1; }',
    '''extern "C" __global__ void k1(int* x) {
        while (atomicCAS(x + 1, 0, 1)) {}
        x[0]++;
        __threadfence();
        atomicExch(x + 1, 0);
    }''',
]
codes = [Program(s, "c++").compile("cubin") for s in SOURCES]
kernels = [code.get_kernel(f"k{i}") for i, code in enumerate(codes)]
memory = device.allocate(8, stream=stream)
memory.fill(0, stream=stream)
launch(stream, LaunchConfig(grid=1, block=1), kernels[0], memory)
stream.sync()
memory.fill(0, stream=stream)
where = []
address = modules.Variant.independent_address
def and_collect(self):
    where.append(threading.current_thread() is threading.main_thread())
    gc.collect()
    return address(self)
modules.Variant.independent_address = and_collect
gc.disable()
circle = [codes.pop(0), kernels.pop(0)]
circle.append(circle)
del circle
launch(stream, LaunchConfig(grid=4, block=32), kernels[0], memory)
stream.sync()
print(where)
""",
    )
    assert done.stdout.strip() == "[False]", done.stdout + done.stderr
