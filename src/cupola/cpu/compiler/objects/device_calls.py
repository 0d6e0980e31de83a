"""The functions of the device runtime that need the driver: launches from kernels, and what belongs to them.

A program declares such a function as external (CUDA's cuda_device_runtime_api.h), and links ``libcudadevrt``, which has
it. Here each becomes a function of PTX that widens its arguments to words of 64 bits and calls an external function
with a name of `asked`, which machine code passes on to the driver (engine/instructions/ask.c).

The order of `FUNCTIONS` is that of ``cpu_device_function`` in engine/device_calls.h (a test compares the two).
"""

from __future__ import annotations

from typing import Final, NamedTuple


class DeviceFunction(NamedTuple):
    """A function: whether it belongs to dynamic parallelism, its parameters and its result."""

    parallelism: bool
    parameters: tuple[str, ...]
    result: str

    @property
    def words(self) -> int:
        """How many words the driver is given."""
        return sum(len(WORDS[type]) for type in self.parameters)


WORDS: Final = {
    "u32": ("u32",),
    "u64": ("u64",),
    "dim3": ("u32",) * 3,
    "extent": ("u64",) * 3,
    "pitched": ("u64",) * 4,
}
"""What the parameters consist of: ``dim3``, ``cudaExtent`` and ``cudaPitchedPtr`` are structures."""

_COPY = ("u64", "u64", "u64", "u32", "u64")
_FUNC_SHAPE = ("u64", "dim3", "dim3", "u32")

FUNCTIONS: Final = {
    "GraphLaunch": DeviceFunction(False, ("u64", "u64"), "u32"),
    "GetParameterBuffer": DeviceFunction(True, ("u64", "u64"), "u64"),
    "GetParameterBufferV2": DeviceFunction(True, _FUNC_SHAPE, "u64"),
    "LaunchDevice": DeviceFunction(True, ("u64", "u64", "dim3", "dim3", "u32", "u64"), "u32"),
    "LaunchDeviceV2": DeviceFunction(True, ("u64", "u64"), "u32"),
    "GetLastError": DeviceFunction(True, (), "u32"),
    "PeekAtLastError": DeviceFunction(True, (), "u32"),
    "GetErrorString": DeviceFunction(True, ("u32",), "u64"),
    "GetErrorName": DeviceFunction(True, ("u32",), "u64"),
    "StreamCreateWithFlags": DeviceFunction(True, ("u64", "u32"), "u32"),
    "StreamDestroy": DeviceFunction(True, ("u64",), "u32"),
    "StreamWaitEvent": DeviceFunction(True, ("u64", "u64", "u32"), "u32"),
    "EventCreateWithFlags": DeviceFunction(True, ("u64", "u32"), "u32"),
    "EventRecord": DeviceFunction(True, ("u64", "u64"), "u32"),
    "EventRecordWithFlags": DeviceFunction(True, ("u64", "u64", "u32"), "u32"),
    "EventDestroy": DeviceFunction(True, ("u64",), "u32"),
    "Malloc": DeviceFunction(True, ("u64", "u64"), "u32"),
    "Free": DeviceFunction(True, ("u64",), "u32"),
    "MemcpyAsync": DeviceFunction(True, _COPY, "u32"),
    "Memcpy2DAsync": DeviceFunction(True, ("u64",) * 6 + ("u32", "u64"), "u32"),
    "Memcpy3DAsync": DeviceFunction(True, ("u64", "u64"), "u32"),
    "MemsetAsync": DeviceFunction(True, ("u64", "u32", "u64", "u64"), "u32"),
    "Memset2DAsync": DeviceFunction(True, ("u64", "u64", "u32", "u64", "u64", "u64"), "u32"),
    "Memset3DAsync": DeviceFunction(True, ("pitched", "u32", "extent", "u64"), "u32"),
    "DeviceGetAttribute": DeviceFunction(True, ("u64", "u32", "u32"), "u32"),
    "DeviceGetLimit": DeviceFunction(True, ("u64", "u32"), "u32"),
    "DeviceGetCacheConfig": DeviceFunction(True, ("u64",), "u32"),
    "DeviceGetSharedMemConfig": DeviceFunction(True, ("u64",), "u32"),
    "GetDevice": DeviceFunction(True, ("u64",), "u32"),
    "GetDeviceCount": DeviceFunction(True, ("u64",), "u32"),
    "RuntimeGetVersion": DeviceFunction(True, ("u64",), "u32"),
    "FuncGetAttributes": DeviceFunction(True, ("u64", "u64"), "u32"),
    "OccupancyMaxActiveBlocksPerMultiprocessor": DeviceFunction(True, ("u64", "u64", "u32", "u64"), "u32"),
    "OccupancyMaxActiveBlocksPerMultiprocessorWithFlags": DeviceFunction(
        True, ("u64", "u64", "u32", "u64", "u32"), "u32"
    ),
}
"""By name, without the prefix: ``cuda`` for graphs, ``__cudaCDP2`` for dynamic parallelism."""

_WITH_PER_THREAD_FORM = frozenset(
    ["LaunchDevice", "LaunchDeviceV2", "StreamWaitEvent", "EventRecord", "EventRecordWithFlags"]
    + [name for name in FUNCTIONS if name.startswith(("Memcpy", "Memset"))]
)
"""Those that have a second name for programs whose default stream is one for each thread. In kernels it makes no
difference: the default stream is the block's."""

_PREFIX = "cupola_asks_"


def asked(name: str) -> str:
    """The name of the external function that stands for the driver's."""
    return _PREFIX + name


ASKED: Final = {asked(name): number for number, name in enumerate(FUNCTIONS)}
"""By the names of `asked`: the number that machine code gives to the driver."""


def _spellings(name: str, function: DeviceFunction) -> tuple[str, ...]:
    plain = ("__cudaCDP2" if function.parallelism else "cuda") + name
    return (plain, f"{plain}_ptsz") if name in _WITH_PER_THREAD_FORM else (plain,)


SPELLINGS: Final = {spelling: name for name, function in FUNCTIONS.items() for spelling in _spellings(name, function)}
"""What programs call, and the name in `FUNCTIONS`."""

_BYTES = {"u32": 4, "u64": 8}


def _declared(type: str, name: str) -> str:
    words = WORDS[type]
    if len(words) == 1:
        return f".param .b{8 * _BYTES[type]} {name}"
    size = _BYTES[words[0]]
    return f".param .align {size} .b8 {name}[{size * len(words)}]"


def _wrapper(spelling: str, name: str) -> str:
    function = FUNCTIONS[name]
    parameters = [_declared(type, f"p{number}") for number, type in enumerate(function.parameters)]
    lines, count = [], 0
    for number, type in enumerate(function.parameters):
        for index, word in enumerate(WORDS[type]):
            place = f"[p{number}+{index * _BYTES[word]}]"
            if word == "u64":
                lines.append(f"ld.param.u64 %a{count}, {place};")
            else:
                lines.append(f"ld.param.u32 %w, {place}; cvt.u64.u32 %a{count}, %w;")
            count += 1
    given = [f".param .b64 q{number}; st.param.b64 [q{number}], %a{number};" for number in range(count)]
    arguments = f", ({', '.join(f'q{number}' for number in range(count))})" if count else ""
    result = "st.param.b64 [result], %r;"
    if function.result == "u32":
        result = "cvt.u32.u64 %w, %r; st.param.b32 [result], %w;"
    return "\n".join(
        [
            f".visible .func (.param .b{8 * _BYTES[function.result]} result) {spelling}({', '.join(parameters)})",
            "{ .reg .b32 %w; .reg .b64 %r, %a<12>;",
            *lines,
            "{",
            *given,
            f".param .b64 answer; call.uni (answer), {asked(name)}{arguments}; ld.param.b64 %r, [answer];",
            "}",
            result,
            "ret; }",
        ]
    )


def as_ptx() -> str:
    """All of them as functions of PTX, behind declarations of what they call."""
    declarations = []
    for name, function in FUNCTIONS.items():
        parameters = ", ".join(f".param .b64 q{number}" for number in range(function.words))
        declarations.append(f".extern .func (.param .b64 answer) {asked(name)}({parameters});")
    return "\n".join([*declarations, *(_wrapper(spelling, name) for spelling, name in SPELLINGS.items()), ""])
