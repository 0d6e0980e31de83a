"""The operations as cupola, cuda.core and CuPy users write them; cupola and cuda.core share one text.

Each maker returns a dictionary from the row's name to ``(statement, names)`` for `timeit`.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
from typing import Any

import numpy as np

SOURCE = r"""
extern "C" __global__ void one(float* x) {}
extern "C" __global__ void three(float* x, float a, size_t n) {}
extern "C" __global__ void sixteen(float* a, float* b, float* c, float* d, float* e, float* f, float* g, float* h,
    float* i, float* j, float* k, float* l, float* m, float* n, float* o, float* p) {}
"""

# row: name of the graph that it launches
GRAPHS = {
    "graph launch, 20 kernels": "graph",
    "graph launch, 20 kernels of 16 buffers": "with_buffers",
    "graph launch, 20 kernels and a callback": "with_callback",
    "graph launch, 20 kernels, after an update": "updated",
    "graph launch, 20 kernels, made node by node": "defined",
    "graph launch, the same, after changes and an update": "redefined",
}

Statements = dict[str, "tuple[str, dict[str, Any]]"]


def object_layer(module_name: str) -> tuple[Statements, dict[str, Any]]:
    """The statements for cupola or cuda.core, and the objects they use."""
    core = importlib.import_module(module_name)
    utils = importlib.import_module(f"{module_name}.utils")
    dev = core.Device(0)
    dev.set_current()
    options = core.ProgramOptions(std="c++17", arch=f"sm_{dev.arch}")
    code = core.Program(SOURCE, code_type="c++", options=options).compile("cubin")
    stream, other = dev.create_stream(), dev.create_stream()
    buffers = [dev.allocate(1024, stream=stream) for _ in range(16)]
    tiles = dev.allocate(4 * 64 * 64, stream=stream)
    host = core.LegacyPinnedMemoryResource().allocate(1024)
    event = dev.create_event()
    stream.record(event)
    groups, _rest = dev.resources.sm.split(core.SMResourceOptions(count=16))
    green = dev.create_context(core.ContextOptions(groups))
    one, config = code.get_kernel("one"), core.LaunchConfig(grid=1, block=32)
    names: dict[str, Any] = {
        "Device": core.Device,
        "launch": core.launch,
        "SMV": utils.StridedMemoryView,
        "dev": dev,
        "properties": dev.properties,
        "stream": stream,
        "other": other,
        "green": green,
        "green_stream": green.create_stream(),
        "config": config,
        "one": one,
        "three": code.get_kernel("three"),
        "sixteen": code.get_kernel("sixteen"),
        "b": buffers[0],
        "bs": buffers,
        "a": np.float32(1),
        "n": np.uint64(5),
        "host": host,
        "event": event,
        **_graphs(core, module_name, stream, config, code, buffers),
        "array": np.zeros((3, 5), np.float32),
        **_textures(module_name, dev),
        "tile": utils.StridedMemoryView.from_buffer(tiles, (64, 64), dtype=np.dtype("f4")),
    }
    statements = {
        "launch, 1 pointer": "launch(stream, config, one, b)",
        "launch, 3 arguments": "launch(stream, config, three, b, a, n)",
        "launch, 16 buffers": "launch(stream, config, sixteen, *bs)",
        "launch + sync": "launch(stream, config, one, b); stream.sync()",
        "allocate + free, 1 KiB": "dev.allocate(1024, stream=stream).close()",
        "event record": "stream.record(event)",
        "event create + record + destroy": "stream.record().close()",
        "stream wait event": "other.wait(event)",
        "copy 1 KiB host to device": "b.copy_from(host, stream=stream)",
        "fill 1 KiB": "b.fill(0, stream=stream)",
        "stream create + close": "dev.create_stream().close()",
        "stream of a green context, create + close": "green.create_stream().close()",
        "event create + record + destroy, green context": "green_stream.record().close()",
        "texture create + close": "dev.create_texture_object(resource=descriptor).close()",
        "texture create + close, with options": (
            "dev.create_texture_object(resource=descriptor, options=sampling).close()"
        ),
        **{row: f"{name}.launch(stream)" for row, name in GRAPHS.items()},
        "tensor map of a view": "tile.as_tensor_map((8, 16))",
        "view of a NumPy array": "SMV.from_any_interface(array, stream_ptr=-1)",
        "Device(0)": "Device(0)",
        "cached property": "properties.multiprocessor_count",
    }
    rows: Statements = {
        name: (statement, names) for name, statement in statements.items() if names.get(GRAPHS.get(name), 0) is not None
    }
    try:
        gl = _opengl(None if dev.name.startswith("cupola") else 0)
        names["shared"] = core.GraphicsResource.from_gl_buffer(gl.buffer(1024))
        rows["OpenGL buffer, map + unmap"] = ("shared.map(stream=stream); shared.unmap()", names)
    except (ImportError, RuntimeError) as error:
        print(f"without OpenGL: {error}")
    try:
        import torch

        names["tensor"] = torch.zeros(8, device="cuda")
        rows["view of a torch tensor"] = ("SMV.from_any_interface(tensor, stream_ptr=-1)", names)
        names["stream_number"] = int(stream.handle)
        rows["view of a torch tensor, ordered before a stream"] = (
            "SMV.from_any_interface(tensor, stream_ptr=stream_number)",
            names,
        )
    except (ImportError, RuntimeError, AssertionError):
        pass
    try:
        import cupy

        names["cupy_array"] = cupy.zeros(8, cupy.float32)
        rows["view of a CuPy array"] = ("SMV.from_any_interface(cupy_array, stream_ptr=-1)", names)
    except Exception:  # CuPy raises errors of its own where there is no GPU
        pass
    return rows, names


def _textures(module_name: str, dev: Any) -> dict[str, Any]:
    texture = importlib.import_module(f"{module_name}.texture")
    array = dev.create_opaque_array(texture.OpaqueArrayOptions((64, 64), "float32", 4))
    return {
        "texture_array": array,
        "descriptor": texture.ResourceDescriptor.from_opaque_array(array),
        "sampling": texture.TextureObjectOptions(filter_mode="linear", address_mode="wrap", normalized_coords=True),
    }


@functools.cache
def _opengl(cuda_device: int | None) -> Any:
    """A context of OpenGL, current from here on; the same for all layers."""
    from examples.opengl import OpenGL

    return OpenGL(cuda_device)


def _graphs(core: Any, module_name: str, stream: Any, config: Any, code: Any, buffers: list[Any]) -> dict[str, Any]:
    """The executable graphs of `GRAPHS`; None for what a package does not have."""
    one, sixteen = code.get_kernel("one"), code.get_kernel("sixteen")

    def record(kernel: Any, arguments: list[Any], callback: Any = None) -> Any:
        builder = stream.create_graph_builder()
        builder.begin_building()
        for _ in range(20):
            core.launch(builder, config, kernel, *arguments)
        if callback:
            builder.callback(callback)
        return builder.end_building()

    # A C function, as that of the C side: one of Python would take the lock that the loop of launches needs.
    nothing = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(("free", ctypes.CDLL(None)))
    made = {
        "graph": record(one, buffers[:1]).complete(),
        "with_buffers": record(sixteen, buffers).complete(),
        "with_callback": record(one, buffers[:1], nothing).complete(),
        "updated": record(one, buffers[:1]).complete(),
        "defined": None,
        "redefined": None,
    }
    made["updated"].update(record(one, buffers[1:2]))
    try:
        definition = importlib.import_module(f"{module_name}.graph").GraphDefinition
    except (ImportError, AttributeError):
        definition = None
    if definition is not None:

        def define(buffer: Any) -> tuple[Any, list[Any]]:
            graph, nodes = definition(), []
            for _ in range(20):
                nodes.append((nodes[-1] if nodes else graph).launch(config, one, buffer))
            return graph, nodes

        graph, nodes = define(buffers[0])
        made["defined"], made["redefined"] = graph.instantiate(), graph.instantiate()
        made["redefined"].update(define(buffers[1])[0])
        for node in nodes:
            made["redefined"][node].update(config=config, kernel=one, args=(buffers[2],))
    for graph in made.values():
        if graph is not None:
            graph.upload(stream)
    stream.sync()
    return made


def cupy_layer() -> Statements:
    """The statements for CuPy, as far as it has the operation."""
    import cupy

    kernels = {name: cupy.RawKernel(SOURCE, name) for name in ("one", "three", "sixteen")}
    stream, other = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
    event = cupy.cuda.Event(disable_timing=True)
    stream.use()
    stream.record(event)
    arrays = [cupy.zeros(256, cupy.float32) for _ in range(16)]
    names: dict[str, Any] = {
        **kernels,
        "cupy": cupy,
        "stream": stream,
        "other": other,
        "event": event,
        "grid": (1,),
        "block": (32,),
        "x": arrays[0],
        "xs": tuple(arrays),
        "arguments": (arrays[0],),
        "a": np.float32(1),
        "n": np.uint64(5),
        "host": np.zeros(256, np.float32),
    }
    statements = {
        "launch, 1 pointer": "one(grid, block, (x,))",
        "launch, 3 arguments": "three(grid, block, (x, a, n))",
        "launch, 16 buffers": "sixteen(grid, block, xs)",
        "launch + sync": "one(grid, block, (x,)); stream.synchronize()",
        "allocate + free, 1 KiB": "cupy.cuda.alloc(1024)",
        "event record": "stream.record(event)",
        "stream wait event": "other.wait_event(event)",
    }
    return {name: (statement, names) for name, statement in statements.items()}
