"""What instruments see of a kernel, with the simplest one; and that nothing of them is there when they are off."""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator

import pytest

from cupola import Device, LaunchConfig, Program, ProgramOptions, Stream, launch
from cupola.cpu import _instruments
from cupola.cpu.compiler import modules
from cupola.cpu.compiler.emit import bodies
from cupola.cpu.compiler.emit.instruments import NAMES, blocks, names_of, set_of
from cupola.cpu.compiler.emit.instruments.instrument import Instrument, MemoryAccess, accesses_of, instructions_of
from cupola.cpu.compiler.emit.values.values import Value
from cupola.cpu.compiler.objects import abi
from cupola.cpu.compiler.ptx import ast
from tests import processes

pytestmark = [
    pytest.mark.cpu_only,
    pytest.mark.unchecked(reason="it chooses instruments itself, and counts what threads do together"),
]

SOURCE = r"""
extern "C" __global__ void paths(int *x, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    int v = 0;
#pragma unroll 1
    for (int i = 0; i < t % 5; i++) v += __brev(i);
    if (t % 4 == 1) x[t] = v / 7;                       // some threads of each warp
    else if (n < 0) x[t] = 99;                          // none
    else atomicAdd(&x[t], v);
}
extern "C" __global__ void apart(int *x) {               // needs the independent body
    int t = threadIdx.x, v;
    if (t % 32 < 16) v = __shfl_xor_sync(0xFFFFFFFF, t * 3, 5);
    else v = __shfl_xor_sync(0xFFFFFFFF, t * 7, 3);
    x[t] = v;
}
extern "C" __global__ void small(int *x) {
    __shared__ int s[8];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = s[7 - threadIdx.x];
}
extern "C" __global__ void barriers(int *x) {
    if (threadIdx.x % 64 < 16) __syncthreads();         // the first warp parts, the second comes whole
    else __syncthreads();
    __syncthreads();
    x[threadIdx.x] = 1;
}
extern "C" __global__ void wrong(int *x) { x[threadIdx.x == 3 ? 1 << 28 : threadIdx.x] = 1; }
"""


@pytest.fixture(scope="module")
def program():
    dev = Device()
    dev.set_current()
    options = ProgramOptions(arch=f"sm_{dev.arch}", lineinfo=True)
    return Program(SOURCE, "c++", options).compile("cubin")


@pytest.fixture
def stream() -> Iterator[Stream]:
    dev = Device()
    dev.set_current()
    stream = dev.create_stream()
    yield stream
    stream.close()


def run(
    program, stream, name: str, grid: int, block: int, *arguments: object
) -> tuple[modules.Variant, list[list[int]]]:
    """Launch with block counters; the kernel with the counters of each of its blocks."""
    memory = Device().allocate(4096, stream=stream)
    memory.fill(0, stream=stream)
    modules.take_counts()
    with _instruments.switched_on("blocks"):
        launch(stream, LaunchConfig(grid=grid, block=block), program.get_kernel(name), memory, *arguments)
    stream.sync()
    memory.close(stream)
    ((variant, counted),) = modules.take_counts()
    (counts,) = counted.values()
    assert counts.launches == 1
    places = blocks.places(variant.facts())
    numbers = struct.unpack(f"<{places[-1]}Q", counts.counters)
    return variant, [list(numbers[a:b]) for a, b in zip(places, places[1:], strict=False)]


def block_with(variant: modules.Variant, *opcodes: str) -> int:
    """The block that has an instruction with one of the opcodes."""
    blocks = variant.facts().analysis.blocks
    return next(block.index for block in blocks if any(i.opcode in opcodes for i in block.code()))


def test_blocks_and_branches_are_counted(program, stream) -> None:
    n, grid, block = 90, 2, 64
    variant, counted = run(program, stream, "paths", grid, block, n)
    assert counted[0][:2] == [4, grid * block], "4 warps, all threads"
    trips = [t % 5 for t in range(n)]
    warps = [trips[i : i + 32] for i in range(0, n, 32)]
    loop = counted[block_with(variant, "brev")]
    assert loop[:3] == [sum(map(max, warps)), sum(trips), sum(t > 0 for t in trips)]
    some = sum(t % 4 == 1 for t in range(n))
    assert counted[block_with(variant, "atom", "red")][:3] == [3, n - some, n - some]
    branches = [{tuple(count[4:6]), tuple(count[6:8])} for count in counted]
    assert {(2, 128 - n), (3, n)} in branches, "the fourth warp has no thread below n, the third has both"
    assert {(0, 0), (3, n - some)} in branches, "n < 0 holds for nobody"


def test_both_bodies_count_in_one_table(program, stream) -> None:
    variant, counted = run(program, stream, "apart", 1, 64)
    assert variant._independent is not None
    shuffles = [
        counted[b.index][:2] for b in variant.facts().analysis.blocks if b.terminator and b.terminator.opcode == "shfl"
    ]
    assert shuffles == [[2, 32], [2, 32]]


def test_barriers_that_warps_reach_apart(program, stream) -> None:
    variant, counted = run(program, stream, "barriers", 1, 64)
    assert variant._independent is not None
    barriers = [b.index for b in variant.facts().analysis.blocks if b.terminator and b.terminator.opcode[:3] == "bar"]
    assert sorted(counted[index][:4] for index in barriers) == [[1, 16, 16, 1], [2, 48, 48, 1], [2, 64, 64, 0]]


def test_units_are_warps_though_blocks_are_small(program, stream) -> None:
    variant, counted = run(program, stream, "small", 3, 8)
    assert variant.width == 32
    assert counted[0][:2] == [3, 24]


def test_configurations_are_apart_and_launches_add_up(program, stream) -> None:
    memory = Device().allocate(4096, stream=stream)
    kernel = program.get_kernel("small")
    launch(stream, LaunchConfig(grid=1, block=8), kernel, memory)  # before it is on
    modules.take_counts()
    with _instruments.switched_on("blocks"), _instruments.switched_on("blocks"):
        for grid in (1, 2, 1):
            launch(stream, LaunchConfig(grid=grid, block=8), kernel, memory)
    launch(stream, LaunchConfig(grid=1, block=8), kernel, memory)  # after
    stream.sync()
    ((_, counted),) = modules.take_counts()
    found = {
        key.grid[0]: (counts.launches, struct.unpack_from("<2Q", counts.counters)) for key, counts in counted.items()
    }
    assert found == {1: (2, (2, 16)), 2: (1, (2, 16))}


def test_code_without_instruments_is_what_it_was(program) -> None:
    module = modules.load_image(program.code)
    for index, kernel in enumerate(module.kernels):
        facts = module.facts(index, (64, 1, 1))
        plain, observed = bodies.emit_body(facts), bodies.emit_body(facts, instruments=("blocks",))
        assert plain.counter_count == 0 and "@llvm.ctpop" not in plain.ir, kernel.name
        assert observed.counter_count == blocks.places(facts)[-1]
        assert observed.ir.count("@llvm.ctpop") > len(facts.analysis.blocks)
        place = f"i64 {abi.CONTEXT['counters']}\n"  # of the table in the context
        assert place in observed.ir and place not in plain.ir


def test_without_checks_the_code_is_that_of_no_checks(program) -> None:
    module = modules.load_image(program.code)
    for index, kernel in enumerate(module.kernels):
        facts = module.facts(index, (64, 1, 1))
        plain, checked = bodies.emit_body(facts), bodies.emit_body(facts, instruments=("race", "init", "sync"))
        assert "@cupola_watch_" in checked.ir and "@cupola_watch_" not in plain.ir, kernel.name
        assert bodies.emit_body(facts).ir == plain.ir  # checks have left nothing behind


def test_where_there_is_nothing_to_synchronize_the_check_of_that_costs_nothing(program) -> None:
    module = modules.load_image(program.code)
    codes = {}
    for index, kernel in enumerate(module.kernels):
        facts = module.facts(index, (64, 1, 1))
        codes[kernel.name] = [bodies.emit_body(facts, instruments=instruments) for instruments in ((), ("sync",))]
    plain, checked = codes["paths"]
    assert plain.ir == checked.ir and checked.instruments == ()
    plain, checked = codes["apart"]
    assert plain.ir != checked.ir and checked.instruments == ("sync",)


def test_names_are_bits_of_the_drivers_set() -> None:
    assert names_of(set_of(NAMES)) == NAMES
    assert names_of(0) == ()
    with pytest.raises(ValueError, match="nonsense"):
        _instruments.switch_on("nonsense")
    assert _instruments.on() == ()


class Diary(Instrument):
    """Notes what the emitter calls, and asks for everything that an instrument may write."""

    noted: list[str] = []

    def enter(self, lanes) -> None:
        self.noted.append("enter")

    def leave(self, lanes) -> None:
        self.noted.append("leave")

    def instruction(self, instruction: ast.Instruction) -> None:
        self.lanes_of(instruction)
        self.noted.append(f"{self.number(instruction)} {instruction.opcode}")

    def access(self, access: MemoryAccess) -> None:
        self.call("cupola_next_block", "ptr null", "i32 0")  # any that there is; it is not run
        self.addresses(access)
        what = "rw"[not access.reads : 1 + access.writes]
        self.noted.append(f"{access.instruction.opcode} {what} {access.space} {access.size}")

    def met(self, instruction: ast.Instruction, members: Value | None = None) -> None:
        self.noted.append(f"met {instruction.opcode}")


def test_every_instruction_is_told_once(program, monkeypatch) -> None:
    monkeypatch.setitem(bodies.INSTRUMENTS, "diary", Diary)
    module = modules.load_image(program.code)
    names = [kernel.name for kernel in module.kernels]
    said = {}
    for name in names:
        facts = module.facts(names.index(name), (64, 1, 1))
        for independent in (False, True):
            Diary.noted = []
            bodies.emit_body(facts, independent=independent, instruments=("diary",))
            told = [note for note in Diary.noted if note[0].isdigit()]
            assert told == [f"{i} {instruction.opcode}" for i, instruction in enumerate(instructions_of(facts))]
            said[name, independent] = Diary.noted
    assert {"atom rw global 4", "red rw global 4"} & set(said["paths", False])
    assert {"ld r shared 4", "st w shared 4"} <= set(said["small", True])
    assert said["apart", False].count("met shfl") == 2
    assert said["apart", True].count("met shfl") == 1, "they gather"
    assert {"enter", "leave"} <= set(said["small", False])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];", [(1, "global", 16, "r")]),
        ("st.shared.u8 [%r1], %rs1;", [(0, "shared", 1, "w")]),
        ("atom.add.u32 %r1, [%rd1], 1;", [(1, "generic", 4, "rw")]),
        ("red.shared.add.u64 [%r1], %rd2;", [(0, "shared", 8, "rw")]),
        ("cp.async.ca.shared.global [%r1], [%rd1], 8;", [(0, "shared", 8, "w"), (1, "global", 8, "r")]),
        ("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r2];", [(1, "shared", 16, "r")]),
        ("add.u32 %r1, %r1, %r2;", []),
    ],
)
def test_accesses(text: str, expected: list[tuple[int, str, int, str]]) -> None:
    ptx = (
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() {\n"
        ".reg .f32 %f<5>; .reg .b64 %rd<4>; .reg .b32 %r<4>; .reg .b16 %rs<2>;\n" + text + "\nret;\n}\n"
    )
    facts = modules.load_image(ptx.encode()).facts(0, (32, 1, 1))
    found = accesses_of(instructions_of(facts)[0])
    assert [(a.operand, a.space, a.size, "r" * a.reads + "w" * a.writes) for a in found] == expected


def test_a_launch_that_faults_has_counted() -> None:
    """In a process of its own, whose context is lost."""
    text = f"""
from cupola import *
from cupola.cpu import _instruments
from cupola.cpu.compiler import modules
dev = Device(); dev.set_current(); stream = dev.create_stream()
_instruments.switch_on("blocks")
kernel = Program({SOURCE!r}, "c++").compile("cubin").get_kernel("wrong")
launch(stream, LaunchConfig(grid=1, block=32), kernel, dev.allocate(128, stream=stream))
try: stream.sync()
except CUDAError as error: print(str(error).split(":")[0])
(_, counted), = modules.take_counts()
counts, = counted.values()
print(counts.launches, counts.counters[0])
"""
    done = processes.run([sys.executable, "-c", text], check=True)
    assert done.stdout.splitlines() == ["CUDA_ERROR_ILLEGAL_ADDRESS", "1 1"]
