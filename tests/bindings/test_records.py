"""Records of the bindings: fields, nested records, unions, pointers with counts, and what a record keeps alive."""

from __future__ import annotations

import ctypes
import gc
from pathlib import Path

import numpy as np
import pytest

from cupola.bindings import driver, nvml, nvrtc, runtime


def test_a_new_record_is_zero_and_takes_fields_by_name():
    config = driver.CUlaunchConfig(gridDimX=3, hStream=5)
    assert (config.gridDimX, config.gridDimY, config.hStream) == (3, 0, driver.CUstream(5))
    assert driver.sizeof(driver.CUlaunchConfig) == 56


@pytest.mark.parametrize(
    ("record", "field", "given", "read"),
    [
        ("CUlaunchConfig", "gridDimX", 2**32 - 1, 2**32 - 1),
        ("CUlaunchConfig", "hStream", driver.CUstream(9), driver.CUstream(9)),
        ("CUlaunchConfig", "hStream", None, driver.CUstream(0)),
        ("CUmemLocation", "type", driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, 1),
        ("CUmemLocation", "id", -2, -2),
        ("CUDA_TEXTURE_DESC", "borderColor", [1.0, 2.5, -3.0, 0.0], [1.0, 2.5, -3.0, 0.0]),
        ("CUDA_TEXTURE_DESC", "mipmapLevelBias", 0.5, 0.5),
        ("CUDA_TEXTURE_DESC", "addressMode", (1, 2, 3), [1, 2, 3]),
        ("CUtensorMap", "opaque", [driver.cuuint64_t(i) for i in range(16)], [driver.cuuint64_t(i) for i in range(16)]),
        ("CUtensorMap", "opaque", range(16), [driver.cuuint64_t(i) for i in range(16)]),
        ("CUuuid", "bytes", bytes(range(16)), bytes(range(16))),
        ("CUuuid", "bytes", b"ab", b"ab" + bytes(14)),
        ("CUDA_MEMCPY2D", "srcHost", 4096, 4096),
        ("CUDA_MEMCPY2D", "srcHost", None, 0),
        ("CUDA_MEMCPY2D", "srcDevice", driver.CUdeviceptr(7), driver.CUdeviceptr(7)),
        ("CUeglFrame", "width", 7, 7),
    ],
)
def test_fields(record, field, given, read):
    item = getattr(driver, record)()
    setattr(item, field, given)
    assert getattr(item, field) == read


@pytest.mark.parametrize(
    ("record", "field", "given", "error"),
    [
        ("CUlaunchConfig", "gridDimX", -1, OverflowError),
        ("CUlaunchConfig", "gridDimX", 2**32, OverflowError),
        ("CUlaunchConfig", "gridDimX", None, TypeError),
        ("CUlaunchConfig", "gridDimX", 1.5, TypeError),
        ("CUlaunchConfig", "nothing", 1, AttributeError),
        ("CUlaunchConfig", "attrs", None, TypeError),
        ("CUlaunchConfig", "attrs", [driver.CUuuid()], TypeError),
        ("CUlaunchConfig", "hStream", "x", TypeError),
        ("CUtensorMap", "opaque", [1, 2], IndexError),
        ("CUuuid", "bytes", bytes(17), IndexError),
        ("CUuuid", "bytes", "text", TypeError),
        ("CUmemPoolProps", "location", driver.CUuuid(), TypeError),
        ("CUmemPoolProps", "location", None, TypeError),
        ("CUDA_MEMCPY2D", "srcHost", "x", TypeError),
    ],
)
def test_bad_values(record, field, given, error):
    item = getattr(driver, record)()
    with pytest.raises(error):
        setattr(item, field, given)


def test_nested_records_are_live_views():
    properties = driver.CUmemPoolProps()
    assert properties.location is properties.location
    properties.location.id = 5
    assert properties.location.id == 5
    other = driver.CUmemLocation(id=6)
    properties.location = other
    other.id = 7
    assert properties.location.id == 6, "assignment copies"
    view = properties.location
    del properties
    gc.collect()
    assert view.id == 6, "a view keeps the memory"


def test_unions_share_their_memory():
    value = driver.CUlaunchAttributeValue()
    value.clusterDim.x = 3
    assert value.cooperative == 3


def test_pointer_and_count():
    config, attribute = driver.CUlaunchConfig(), driver.CUlaunchAttribute()
    attribute.value.priority = 1
    assert config.attrs == []
    config.attrs = [attribute, attribute]
    assert (len(config.attrs), config.numAttrs) == (2, 0), "the count is a field of its own"
    attribute.value.priority = 9
    assert config.attrs[0].value.priority == 1, "assignment copies"
    first = config.attrs[0]
    first.value.priority = 5
    assert [a.value.priority for a in config.attrs] == [1, 1], "so does reading"
    config.attrs = []
    gc.collect()
    assert first.value.priority == 5 and config.attrs == []


def test_pointer_and_count_that_the_library_filled_in():
    operations = [driver.CUstreamBatchMemOpParams(), driver.CUstreamBatchMemOpParams()]
    operations[1].waitValue.flags = 3
    source = driver.CUDA_BATCH_MEM_OP_NODE_PARAMS(paramArray=operations, count=2)
    node = driver.CUDA_BATCH_MEM_OP_NODE_PARAMS()
    ctypes.memmove(node.getPtr(), source.getPtr(), driver.sizeof(driver.CUDA_BATCH_MEM_OP_NODE_PARAMS))
    assert [o.waitValue.flags for o in node.paramArray] == [0, 3]


def test_elements_of_a_fixed_array_are_copies():
    frame = runtime.cudaEglFrame()
    frame.frame.pPitch = [runtime.cudaPitchedPtr(pitch=n) for n in (123, 456, 789)]
    planes = frame.frame.pPitch
    planes[0].pitch = 1234
    assert [p.pitch for p in frame.frame.pPitch] == [123, 456, 789]
    frame.frame.pPitch = planes
    assert [p.pitch for p in frame.frame.pPitch] == [1234, 456, 789]
    assert [int(a) for a in frame.frame.pArray] == [0, 1234, 0], "of a union"


def test_what_an_element_refers_to_stays():
    data = bytearray(b"abc")
    frame = runtime.cudaEglFrame()
    frame.frame.pPitch = [runtime.cudaPitchedPtr(ptr=data) for _ in range(3)]
    first = frame.frame.pPitch[0]
    del frame
    gc.collect()
    assert ctypes.string_at(first.ptr, 3) == b"abc"
    with pytest.raises(BufferError):
        data.extend(b"x")


def arrays_below(record, path=()):
    """Paths of all fields that read as a list of records or handles, those of nested records and unions included."""
    for name in dir(type(record)):
        if name.startswith("__") or type(getattr(type(record), name)).__name__ != "getset_descriptor":
            continue
        value = getattr(record, name, None)  # some are of another CUDA major
        if isinstance(value, list) and value and hasattr(value[0], "getPtr"):
            yield (*path, name)
        elif hasattr(value, "getPtr") and not hasattr(value, "__int__"):
            yield from arrays_below(value, (*path, name))


@pytest.mark.parametrize("module", [driver, runtime], ids=["driver", "runtime"])
def test_arrays_over_foreign_memory_outlive_it(module):
    """What was read from a record over somebody's memory stays when the record and that memory are gone."""
    seen = set()
    for name in dir(module):
        cls = getattr(module, name)
        if not isinstance(cls, type) or not hasattr(cls, "to_array"):
            continue
        for path in arrays_below(cls()):
            memory = ctypes.create_string_buffer(module.sizeof(cls))
            value = cls(_ptr=ctypes.addressof(memory))
            for field in path:
                value = getattr(value, field)
            texts = [str(item) for item in value]
            inside = range(ctypes.addressof(memory), ctypes.addressof(memory) + len(memory))
            assert not any(item.getPtr() in inside for item in value), (name, path)
            ctypes.memset(memory, 1, len(memory))
            assert [str(item) for item in value] == texts, (name, path)
            seen.add((name, *path))
    assert seen & {("cudaEglFrame", "frame", "pPitch"), ("CUtensorMap", "opaque")}


@pytest.mark.parametrize(
    ("cls", "field"),
    [
        (driver.CUgraphEdgeData, "reserved"),
        (driver.CUmemPoolProps, "reserved"),
        (driver.CUipcEventHandle, "reserved"),
        (driver.CUDA_TEXTURE_DESC, "reserved"),
        (runtime.cudaGraphEdgeData, "reserved"),
        (runtime.cudaMemPoolProps, "reserved"),
    ],
)
def test_reserved_fields(cls, field):
    """cuda.bindings 12 and 13.0 have them."""
    record = cls()
    zero = getattr(record, field)
    assert not any(zero if isinstance(zero, bytes) else map(int, zero))
    setattr(record, field, [1] * len(zero))
    assert getattr(record, field) == type(zero)([1] * len(zero))
    with pytest.raises((IndexError, ValueError)):
        setattr(record, field, [300] * (len(zero) + 1))


PUBLISHED = [
    line.split()
    for line in Path(__file__).with_name("published_fields.txt").read_text().splitlines()
    if not line.startswith("#")
]


@pytest.mark.parametrize("module", [driver, runtime], ids=["driver", "runtime"])
def test_the_fields_of_cuda_bindings_exist(module):
    published = [(name, fields) for place, name, *fields in PUBLISHED if module.__name__.endswith(place)]
    assert len(published) > 70
    missing = [
        f"{name}.{field}" for name, fields in published for field in fields if not hasattr(getattr(module, name), field)
    ]
    # The first has another length in each CUDA major; newer headers have another name for the second.
    assert missing == ["cudaDeviceProp.reserved" if module is runtime else "CUcheckpointRestoreArgs.reserved1"]


def test_sources_and_destinations_of_a_batch():
    node = driver.CUDA_MEMCPY_BATCH_NODE_PARAMS()
    node.set_dsts_srcs([1, 2], (3, driver.CUdeviceptr(4)))
    assert (node.count, [int(p) for p in node.dsts], [int(p) for p in node.srcs]) == (2, [1, 2], [3, 4])
    for dsts, srcs, error in [([1], [], ValueError), (None, [1], TypeError), (["x"], [1], TypeError)]:
        with pytest.raises(error):
            node.set_dsts_srcs(dsts, srcs)
    assert not hasattr(driver.CUuuid, "set_dsts_srcs")


def test_graphs_that_a_conditional_node_will_have():
    for cls in (driver.CUgraphNodeParams, runtime.cudaGraphNodeParams):
        conditional = cls().conditional
        assert conditional.phGraph_out == []
        conditional.size = 2
        assert [int(graph) for graph in conditional.phGraph_out] == [0, 0]
        conditional.size = 2**32 - 1
        with pytest.raises(ValueError, match="phGraph_out cannot have 4294967295 entries"):
            conditional.phGraph_out  # noqa: B018


def test_memory_of_a_pointer_field_is_kept():
    copy = driver.CUDA_MEMCPY2D(srcHost=bytearray(b"abc"))
    array = np.arange(3)
    copy.dstHost = array
    assert copy.dstHost == array.ctypes.data
    gc.collect()
    assert ctypes.string_at(copy.srcHost, 3) == b"abc"


def test_a_pinned_bytearray_cannot_be_resized():
    data = bytearray(4)
    copy = driver.CUDA_MEMCPY2D(srcHost=data)
    with pytest.raises(BufferError):
        data.extend(b"x")
    copy.srcHost = None
    data.extend(b"x")


def test_kernel_arguments_of_a_node():
    node = driver.CUDA_KERNEL_NODE_PARAMS(kernelParams=((3, 2.5), (ctypes.c_int, ctypes.c_double)))
    pointers = (ctypes.c_void_p * 2).from_address(node.kernelParams)
    gc.collect()
    assert ctypes.c_int.from_address(pointers[0]).value == 3
    assert ctypes.c_double.from_address(pointers[1]).value == 2.5


def test_kernel_arguments_of_a_node_live_as_long_as_it():
    values, data = [driver.CUdeviceptr(77)], bytearray(8)
    node = driver.CUDA_KERNEL_NODE_PARAMS(kernelParams=(values, [None]))
    values.clear()
    others = [driver.CUdeviceptr(i) for i in range(100)]  # would take the place of one that is gone
    pointers = (ctypes.c_void_p * 1).from_address(node.kernelParams)
    assert ctypes.c_uint64.from_address(pointers[0]).value == 77, others
    node.kernelParams = ((data,), (None,))
    with pytest.raises(BufferError):
        data.extend(b"x")


def passed(value, ctype):
    """The address of the argument, and its first eight bytes."""
    node = driver.CUDA_KERNEL_NODE_PARAMS(kernelParams=((value,), (ctype,)))
    (place,) = (ctypes.c_uint64 * 1).from_address(node.kernelParams)
    return place, ctypes.c_uint64.from_address(place).value


@pytest.mark.parametrize("module", [driver, runtime, nvrtc], ids=["driver", "runtime", "nvrtc"])
def test_what_stands_over_foreign_memory_is_passed_as_its_address(module):
    """Handles, numbers and callbacks as records are: by address beside c_void_p, in place without a type."""
    memory = ctypes.create_string_buffer(1 << 16)
    here = ctypes.addressof(memory)
    memory[:8] = (7).to_bytes(8, "little")
    classes = [c for name in dir(module) if isinstance(c := getattr(module, name), type) and hasattr(c, "getPtr")]
    assert len(classes) >= (1 if module is nvrtc else 100)
    for cls in classes:
        value = cls(_ptr=here)
        assert passed(value, ctypes.c_void_p)[1] == here, cls
        assert passed(value, None) == (here, 7), cls


class Elsewhere:
    """As the classes of another package are, such as those of cuda.bindings."""

    def __init__(self, address):
        self.address = address

    def getPtr(self):
        return self.address


@pytest.mark.parametrize(
    ("value", "ctype", "expected"),
    [
        (driver.CUdeviceptr(77), ctypes.c_void_p, 77),
        (driver.CUtexObject(5), ctypes.c_void_p, 5),
        (driver.CUresult.CUDA_ERROR_INVALID_VALUE, ctypes.c_void_p, 1),
        ((ctypes.c_int * 4)(), ctypes.c_bool, 1),
        (ctypes.pointer(ctypes.c_int(5)), ctypes.c_bool, 1),
        (ctypes.pointer(ctypes.c_int(5)), ctypes.c_int, TypeError),
        ((ctypes.c_int * 4)(), ctypes.c_void_p, TypeError),
        (Elsewhere(-1), ctypes.c_void_p, OverflowError),
        (Elsewhere("x"), None, TypeError),
        (Elsewhere(9), ctypes.c_int, TypeError),
    ],
)
def test_kernel_arguments_of_other_kinds(value, ctype, expected):
    if isinstance(expected, int):
        assert passed(value, ctype)[1] & 0xFF == expected
    else:
        with pytest.raises(expected):
            passed(value, ctype)


def test_kernel_arguments_of_another_package():
    memory = ctypes.c_uint64(7)
    value = Elsewhere(ctypes.addressof(memory))
    assert passed(value, ctypes.c_void_p)[1] == value.address
    assert passed(value, None) == (value.address, 7)


def test_a_list_that_its_own_items_change():
    class Emptying:
        def __index__(self):
            items.clear()
            return 4

    items = [Emptying(), 5]
    node = driver.CUDA_MEMCPY_BATCH_NODE_PARAMS(sizes=items)
    assert (node.sizes, items) == ([4, 5], [])


def test_a_view_of_a_record_shares_what_it_keeps():
    config, attribute = driver.CUlaunchConfig(), driver.CUlaunchAttribute()
    attribute.value.priority = 7
    view = driver.CUlaunchConfig(_ptr=config.getPtr())
    view.attrs = [attribute, attribute]
    del view, attribute
    gc.collect()
    assert [a.value.priority for a in config.attrs] == [7, 7]
    view = driver.CUlaunchConfig(_ptr=config.getPtr())
    del config
    gc.collect()
    assert [a.value.priority for a in view.attrs] == [7, 7], "the view keeps the memory alive, too"


def test_arrays_that_go_with_a_view_leave_no_pointer():
    memory = (ctypes.c_uint64 * 8)()
    view = driver.CUlaunchConfig(_ptr=ctypes.addressof(memory))
    view.attrs = [driver.CUlaunchAttribute()]
    assert memory[5]
    kept = view.attrs[0]
    other = driver.CUlaunchConfig(attrs=[driver.CUlaunchAttribute()])
    del view
    gc.collect()
    assert memory[5], "the array is still in use"
    del kept
    view = driver.CUlaunchConfig(_ptr=ctypes.addressof(memory))
    view.attrs = other.attrs[0]
    view.attrs = [driver.CUlaunchAttribute()]
    del view
    gc.collect()
    assert not memory[5] and len(other.attrs) == 1


def test_a_pointer_to_one_number():
    params = driver.CUmemDecompressParams()
    assert int(params.dstActBytes) == 0 and "dstActBytes : <cuuint32_t 0>" in str(params)
    count = np.array([77], np.uint32)
    for given in (count, count.ctypes.data):
        params.dstActBytes = given
        assert type(params.dstActBytes) is driver.cuuint32_t and int(params.dstActBytes) == 77
    params.dstActBytes = [5]
    assert int(params.dstActBytes) == 5


@pytest.mark.parametrize("address", [5, 1 << 40, 1 << 63])
def test_what_the_host_cannot_read(address):
    params = driver.CUmemDecompressParams(dstActBytes=address)
    config = driver.CUlaunchConfig(attrs=address, numAttrs=1)
    for record, field in ((params, "dstActBytes"), (config, "attrs")):
        with pytest.raises(ValueError, match=f"{field} points to {address:#x}, which the host cannot read"):
            getattr(record, field)
        assert f"{field} : <ValueError>" in str(record)
    config.numAttrs = 1 << 31
    assert "attrs : <ValueError>" in str(config)


@pytest.mark.parametrize(
    ("cls", "field", "zero"),
    [
        (driver.CUlaunchAttributeValue, "pad", bytes(64)),
        (driver.CUstreamBatchMemOpParams, "pad", [driver.cuuint64_t(0)] * 6),
        (driver.CUdevResource, "_internal_padding", bytes(92)),
        (driver.CUdevResource, "_oversize", bytes(40)),
        (runtime.cudaLaunchAttributeValue, "pad", bytes(64)),
        (runtime.cudaDevResource, "_internal_padding", bytes(92)),
        (runtime.cudaDevResource, "_oversize", bytes(40)),
    ],
)
def test_reserved_members_that_are_shown(cls, field, zero):
    assert getattr(cls(), field) == zero and f"{field} : {zero!r}" in str(cls())


def test_identifiers_and_names_in_texts():
    assert str(driver.CUuuid(bytes=bytes(range(16)))) == f"bytes : {bytes(range(16)).hex()}"
    lines = str(runtime.cudaDeviceProp(name=b"a name", luid=b"\x01")).splitlines()
    assert lines[0] == "name : a name" and "luid : 0100000000000000" in lines


def test_views_of_foreign_memory():
    memory = (ctypes.c_uint8 * 64)()
    view = driver.CUlaunchConfig(_ptr=ctypes.addressof(memory))
    view.gridDimX = 7
    assert memory[0] == 7 and view.getPtr() == ctypes.addressof(memory)
    assert driver.CUlaunchConfig(ctypes.addressof(memory)).gridDimX == 7
    assert runtime.dim3(_ptr=ctypes.addressof(memory)).x == 7


@pytest.mark.parametrize("address", [1, 5, 65535])
@pytest.mark.parametrize(
    "cls", [driver.CUlaunchConfig, driver.CUuuid, runtime.cudaExtent, nvrtc.nvrtcBundledHeadersInfo]
)
def test_a_small_number_is_no_address(cls, address):
    for given in (lambda: cls(address), lambda: cls(_ptr=address)):
        with pytest.raises(ValueError, match=rf"{cls.__name__}\({address}\).*give fields by keyword"):
            given()


def test_fields_are_no_positional_arguments():
    with pytest.raises(TypeError, match="cudaExtent.*fields are given by keyword"):
        runtime.cudaExtent(64, 4, 2)


def test_records_are_buffers():
    handle = driver.CUipcMemHandle()
    memoryview(handle)[0] = 9
    assert bytes(handle) == b"\x09" + bytes(63)
    assert handle.reserved == bytes(handle), "as in cuda.bindings 12"
    assert driver.CUipcEventHandle(reserved=b"x" * 64).reserved == b"x" * 64


def test_alignment():
    assert all(driver.CUtensorMap().getPtr() % 64 == 0 for _ in range(20))


def test_text():
    assert str(driver.CUextent3D(width=1, height=2, depth=3)) == "width : 1\nheight : 2\ndepth : 3"
    assert "location :\n    type : <CUmemLocationType.CU_MEM_LOCATION_TYPE_INVALID: 0>\n    id : 0" in repr(
        driver.CUmemPoolProps()
    )
    assert "srcHost : 0x10\n" in str(driver.CUDA_MEMCPY2D(srcHost=16))


def test_text_ends_with_its_first_nul_and_binary_fields_are_whole():
    properties = runtime.cudaDeviceProp(name=b"some GPU", luid=b"a\0b")
    assert properties.name == b"some GPU" and properties.luid == b"a\0b\0\0\0\0\0"
    properties.name = b"x" * 256
    assert properties.name == b"x" * 256
    with pytest.raises(TypeError, match="expected bytes, got str"):
        properties.name = "text"


def test_typedef_chains_are_subclass_chains():
    assert driver.CUDA_MEMCPY3D.__mro__[:3] == (driver.CUDA_MEMCPY3D, driver.CUDA_MEMCPY3D_v2, driver.CUDA_MEMCPY3D_st)
    assert driver.CUDA_MEMCPY3D().Depth == 0


def test_constructor_errors():
    with pytest.raises(TypeError, match=r"CUmemLocation\(\) has no field 'nothing'; it has: type, id, localized"):
        driver.CUmemLocation(nothing=1)
    with pytest.raises(TypeError, match=r"cudaDeviceProp\(\) has no field 'warpsize'; did you mean: warpSize"):
        runtime.cudaDeviceProp(warpsize=1)
    with pytest.raises(TypeError, match=r"has no field 'q'; help\(cudaDeviceProp\) lists all"):
        runtime.cudaDeviceProp(q=1)
    with pytest.raises(TypeError, match=r"Utilization\(\) has no field 'memroy'; it has: gpu, memory"):
        nvml.Utilization(memroy=1)
    with pytest.raises(TypeError):
        driver.CUlaunchConfig(1, 2)
    with pytest.raises(TypeError):
        driver.CUlaunchConfig("x")
