"""Breakpoints, steps, conditions and watches, driven from Python."""

from __future__ import annotations

import ctypes
import linecache
import sys
from pathlib import Path

import pytest

import cupola.cpu
from cupola import Device, LaunchConfig, Program, ProgramOptions, launch
from cupola.cpu import DebuggerError, ExpressionError
from tests import processes

pytestmark = pytest.mark.cpu_only

SOURCE = """\
struct Point { float x, y; int tag[3]; };
__device__ int table[4] = {1, 2, 3, 4};
__device__ int twice(int a) {
    int b = a * 2;
    return b + 1;
}
extern "C" __global__ void walk(float* x, int n, Point p) {
    __shared__ float tile[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    Point q = p;
    q.tag[1] = i;
    tile[threadIdx.x] = i;
    __syncthreads();
    for (int k = 0; k < 2; k++) {
        int z = k + q.tag[1] + table[k];
        if (i < n)
            x[i] += twice(z) + tile[63 - threadIdx.x];
        else
            x[i] = -1;
    }
}
extern "C" __global__ void halt(int* x, int how) {
    int i = threadIdx.x;
    if (how == 0 && i == 5) __brkpt();
    if (how == 1 && i == 6) __trap();
    if (how == 2 && i == 7)
        x[1 << 20] = i;
    if (how == 3 && i < 32)
        asm volatile("bar.sync 1, 64;");
    x[i] = how;
}
__device__ int factorial(int n) {
    if (n < 2)
        return 1;
    int kept[2] = {n, -n};
    int before = factorial(n - 1);
    return kept[n & 1 ? 0 : 0] * before;
}
extern "C" __global__ void recurse(int* x) {
    x[threadIdx.x] = factorial(4);
}
"""


class Point(ctypes.Structure):
    _fields_ = (("x", ctypes.c_float), ("y", ctypes.c_float), ("tag", ctypes.c_int * 3))


class Run:
    """Kernels under a debugger; each launch is another one's fresh start."""

    def __init__(self, debugger):
        self.debugger = debugger
        self.device = Device()
        self.device.set_current()
        options = ProgramOptions(name="walk.cu", arch="sm_90", debug=True)  # NVRTC may have been chosen before
        self.code = Program(SOURCE, "c++", options).compile("cubin")

    def walk(self, n=128, grid=2):
        stream = self.device.create_stream()
        x = self.device.allocate(4 * 128, stream=stream)
        x.fill(0, stream=stream)
        point = Point(1.5, 2.5, (7, 8, 9))
        launch(stream, LaunchConfig(grid=grid, block=64), self.code.get_kernel("walk"), x, n, point)
        stream.sync()

    def launch(self, name, *arguments, block=64):
        stream = self.device.create_stream()
        x = self.device.allocate(4 * 64, stream=stream)
        x.fill(0, stream=stream)
        launch(stream, LaunchConfig(grid=1, block=block), self.code.get_kernel(name), x, *arguments)
        stream.sync()


@pytest.fixture(scope="module")
def run(folder):
    with cupola.cpu.debugger() as debugger:
        yield Run(debugger)


@pytest.fixture
def stops(run):
    """Call with what to do at each stop; gives a list of what was returned, and takes all breakpoints away again."""
    seen = []
    debugger = run.debugger
    failed = []

    def use(function, most=200):
        @debugger.on_stop
        def look(stop):
            try:
                if len(seen) < most:
                    seen.append(function(stop))
            except Exception as error:
                failed.append(error)

        return seen

    yield use
    debugger._listeners.clear()
    for each in list(debugger.breakpoints):
        debugger.delete(each)
    debugger.watches.clear()
    assert not failed


def here(stop):
    return stop.function, stop.line, stop.block[0], stop.thread[0]


def test_a_function_begins_behind_its_head(run, stops):
    point = run.debugger.breakpoint("walk")
    seen = stops(here)
    run.walk()
    assert seen == [("walk", 9, b, t) for b in (0, 1) for t in (0, 32)]
    assert point.hits == 4 and point.places == ["walk.cu:9 in walk"]


@pytest.mark.parametrize(
    "where, options, expected",
    [
        ("walk.cu:15", {}, [(b, t) for b in (0, 1) for t in (0, 0, 32, 32)]),
        (15, {"block": 1}, [(1, 0), (1, 0), (1, 32), (1, 32)]),
        (15, {"block": 1, "thread": 40}, [(1, 40), (1, 40)]),
        (15, {"condition": "i == 70 && k == 1"}, [(1, 6)]),
        (15, {"temporary": True}, [(0, 0)]),
        ("folder/walk.cu:15", {"thread": (3, 0, 0)}, [(b, 3) for b in (0, 0, 1, 1)]),
        ("twice", {"condition": "a % 10 == 3", "block": 0}, [(0, 2), (0, 0), (0, 32), (0, 40)]),
        ("walk.cu:8", {"block": 0}, [(0, 0), (0, 32)]),  # which has no code: the next line
        ("other.cu:15", {}, []),
        ("nothing", {}, []),
    ],
)
def test_breakpoints(run, stops, where, options, expected):
    run.debugger.breakpoint(where, **options)
    seen = stops(lambda stop: here(stop)[2:])
    run.walk()
    assert seen == expected


IN_A_STRING = """
extern "C" __global__ void in_a_string(int* x) {
    int i = threadIdx.x;

    x[i] = i;
}
"""
STRING = Path(__file__).read_text().splitlines().index('IN_A_STRING = """') + 1


@pytest.mark.parametrize(
    "file, line, expected",
    [
        ("test_session.py", STRING + 2, [3]),
        ("debugging/test_session.py", STRING + 3, [5]),  # which has no code: the next line
        ("test_session.py", STRING + 50, []),
        ("test_terminal.py", STRING + 2, []),
    ],
)
def test_breakpoints_at_lines_of_python(run, stops, monkeypatch, file, line, expected):
    """Where the program has the source as a string, and has not read it from a file."""
    options = ProgramOptions(arch="sm_90", debug=True)
    monkeypatch.setattr(run, "code", Program(IN_A_STRING, "c++", options).compile("cubin"))
    run.debugger.breakpoint(f"{file}:{line}", thread=3)
    seen = stops(lambda stop: stop.line)
    run.launch("in_a_string")
    assert seen == expected


@pytest.mark.parametrize(
    "how, lines",
    [
        ("step", [(14, 1), (15, 1), (16, 1), (17, 1), (3, 2), (4, 2), (5, 2), (14, 1), (15, 1)]),
        ("next", [(14, 1), (15, 1), (16, 1), (17, 1), (14, 1), (15, 1), (16, 1)]),
        ("until", [(14, 1), (15, 1), (16, 1), (17, 1), (21, 1)]),
    ],
)
def test_steps(run, stops, how, lines):
    """Those of one thread: the other warp runs between them, when this one waits."""
    run.debugger.breakpoint("walk.cu:13", block=0, thread=3, temporary=True)

    def go(stop):
        if len(seen) < len(lines):
            getattr(stop, how)()
        return stop.line, len(stop._frames()), stop.thread[0]

    seen = stops(go)
    run.walk()
    assert seen[1:] == [(*place, 3) for place in lines]


def test_finish_comes_back_to_the_call(run, stops):
    run.debugger.breakpoint("twice", block=0, thread=0, temporary=True)

    def go(stop):
        if not seen:
            stop.finish()
        return stop.reason, stop.function, stop.line

    seen = stops(go)
    run.walk()
    assert seen == [("breakpoint", "twice", 4), ("step", "walk", 17)]


VALUES = [
    ("i", 0, 67),
    ("z", 0, 70),
    ("q.tag", 0, [7, 67, 9]),
    ("p.tag[2] + q.tag[1]", 0, 76),
    ("p", 0, {"x": 1.5, "y": 2.5, "tag": [7, 8, 9]}),
    ("(&q)->y", 0, 2.5),
    ("*&q.x", 0, 1.5),
    ("((float *) &q)[1]", 0, 2.5),
    ("tile[0:3]", 0, [64.0, 65.0, 66.0]),
    ("tile[threadIdx.x + 1]", 0, 68.0),
    ("table", 0, [1, 2, 3, 4]),
    ("i %n + (i)%n - threadIdx.x%blockDim.x", 0, 131),
    ("(unsigned) i%n + 017", 0, 82),
    ("sizeof(int)%n", 0, 4),
    ("&table[2] - table", 0, 2),
    ("x[i] == *(x + i)", 0, True),
    ("k", 0, 1),
    ("n", 0, 128),
    ("threadIdx.x", 0, 3),
    ("blockIdx.x * blockDim.x", 0, 64),
    ("gridDim", 0, {"x": 2, "y": 1, "z": 1}),
    ("sizeof(Point) + sizeof q", 0, 40),
    ("%tid.x + %laneid", 0, 6),
]


def test_values(run, stops):
    run.debugger.breakpoint("walk.cu:16", block=1, thread=3, condition="k == 1")
    seen = stops(lambda stop: ([stop.evaluate(e, frame=f) for e, f, _ in VALUES], stop.variables, stop.show("q")))
    run.walk()
    [(values, variables, text)] = seen
    assert values == [value for _, _, value in VALUES]
    assert {name: variables[name] for name in ("i", "k", "n", "z")} == {"i": 67, "k": 1, "n": 128, "z": 70}
    assert text == "{x = 1.5, y = 2.5, tag = {7, 67, 9}}"


@pytest.mark.parametrize(
    "expression, why",
    [
        ("nosuch", "no variable 'nosuch'"),
        ("1 / 0", "division by zero"),
        ("i +", "ends too early"),
        ("089", "begins with 0 is in base 8"),
        ("i = 3", "read only"),
        ("q.nosuch", "it has x, y, tag"),
        ("i.x", "has no members"),
        ("i[0]", "cannot be indexed"),
        ("*(int *) 0 + 1", "no global memory"),
        ("x[1 << 28] + 1", "no global memory"),
        ("q.tag[1 << 20] + 1", "no local memory"),
        ("(nosuch *) x", "no type 'nosuch'"),
        ("&(i + 1)", "no address"),
        ("%nosuch", "no register"),
        ("i @ 3", "not understood"),
        ("(" * 500 + "i" + ")" * 500, "nested too deeply"),
        ("i" * 3000, "too long"),
        ("i << 99", "a shift by 99"),
        ("x[0:100000000]", "at most 65536"),
        ("", "no expression"),
    ],
)
def test_wrong_expressions(run, stops, expression, why):
    run.debugger.breakpoint("walk.cu:15", block=0, thread=0, temporary=True)

    def look(stop):
        with pytest.raises(ExpressionError) as error:
            stop.evaluate(expression)
        return str(error.value)

    seen = stops(look)
    run.walk()
    assert len(seen) == 1 and why in seen[0]


def test_the_caller_has_its_variables(run, stops):
    run.debugger.breakpoint("twice", block=1, thread=40, temporary=True)
    seen = stops(lambda stop: (stop.evaluate("a"), stop.evaluate("z", frame=1), stop.evaluate("q.tag[1]", frame=1)))
    run.walk()
    assert seen == [(105, 105, 104)]


def test_threads_of_a_block(run, stops):
    run.debugger.breakpoint("walk.cu:12", block=0, thread=35, temporary=True)

    def look(stop):
        statuses = [stop.status(t) for t in (0, 31, 32, 63)]
        stop.select(5)
        with pytest.raises(DebuggerError, match="there is no 64"):
            stop.select(64)
        return statuses, stop.line, stop.evaluate("i"), stop.lane_values("i")

    seen = stops(look)
    run.walk()
    assert seen == [(["at barrier 0", "at barrier 0", "here", "here"], 13, 5, {t: t for t in range(32)})]


def test_divergent_threads_have_their_own_values(run, stops):
    run.debugger.breakpoint("walk.cu:19", temporary=True)
    seen = stops(lambda stop: (stop.lanes, stop.evaluate("i"), stop.lane_values("i")))
    run.walk(n=20, grid=1)
    assert seen == [(tuple(range(20, 32)), 20, {t: t for t in range(32)})]


def test_recursion(run, stops):
    run.debugger.breakpoint("factorial", condition="n == 2")

    def look(stop):
        names = [frame.function for frame in stop._frames()]
        with pytest.raises(ExpressionError, match="outer call of a recursive function"):
            stop.evaluate("n", frame=1)
        stop.finish()
        return names, stop.evaluate("n"), stop.line

    seen = stops(look, most=1)
    run.launch("recurse", block=32)
    assert seen == [(["factorial"] * 3 + ["recurse"], 2, 33)]


def test_variables_on_the_stack(run, stops):
    run.debugger.breakpoint("walk.cu:37", thread=3)  # where the calls come back
    seen = stops(lambda stop: (stop.evaluate("kept"), stop.evaluate("before"), len(stop._frames())))
    run.launch("recurse", block=32)
    assert seen == [([2, -2], 1, 4), ([3, -3], 2, 3), ([4, -4], 6, 2)]


def test_brkpt_stops(run, stops):
    seen = stops(lambda stop: (stop.reason, stop.line, stop.thread[0], stop.lanes))
    run.launch("halt", 0)
    assert seen == [("brkpt", 24, 5, (5,))]


def test_a_failed_assertion_is_looked_at():
    """In a process of its own, since the context is lost."""
    source = 'extern "C" __global__ void k(int* x) { int i = threadIdx.x; assert(i < 7); x[i] = i; }'
    program = f"""
import cupola.cpu
from cupola import Device, LaunchConfig, Program, launch
with cupola.cpu.debugger() as debugger:
    device = Device()
    device.set_current()
    stream = device.create_stream()
    kernel = Program({source!r}, "c++").compile("cubin").get_kernel("k")

    @debugger.on_stop
    def look(stop):
        print(stop.reason, stop.line, stop.evaluate("i"), "assertion" in stop.explanation, flush=True)

    launch(stream, LaunchConfig(grid=1, block=32), kernel, device.allocate(256, stream=stream))
    try:
        stream.sync()
    except Exception as error:
        print("CUDA_ERROR_ASSERT" in str(error))
"""
    done = processes.run([sys.executable, "-c", program])
    assert done.stdout.split("\n")[:2] == ["fault 1 7 True", "True"], done.stdout + done.stderr


def test_what_is_wrong_with_a_watch_is_told_once(run, stops):
    told = []
    watch = run.debugger.watch("walk.cu:15:nothing", tell=told.append)
    run.walk(grid=1)
    assert len(watch.values) == 128 and told == watch.values[:1]
    assert told[0].value is None and told[0].text.startswith("<there is no variable 'nothing' here")


def test_watches(run, stops):
    told = []
    watch = run.debugger.watch("walk.cu:15:i + k", tell=told.append)
    run.walk(grid=1)
    assert len(watch.values) == 128 and told == watch.values
    assert [seen.value for seen in watch.values[:3]] == [0, 1, 2]
    last = watch.values[-1]
    assert (last.kernel, last.file, last.line, last.block, last.thread, last.text) == (
        "walk",
        "walk.cu",
        15,
        (0, 0, 0),
        (63, 0, 0),
        "64",
    )


def test_launch_lines_of_python(run, stops):
    run.debugger.breakpoint("walk", temporary=True)
    seen = stops(lambda stop: stop.launched)
    run.walk()
    [(file, line)] = seen
    assert file == __file__ and "launch(" in linecache.getline(file, line)


def test_interrupt(run, stops):
    run.debugger.interrupt()
    seen = stops(lambda stop: (stop.reason, stop.line))
    run.walk()
    assert seen == [("interrupt", 7)]


@pytest.mark.parametrize("where", ["", "a b c", "x:", ":", "12:x", "3 + 4"])
def test_wrong_places(run, where):
    with pytest.raises(DebuggerError, match="neither a function"):
        run.debugger.breakpoint(where)


def test_one_at_a_time(run):
    with pytest.raises(RuntimeError, match="one at a time"), cupola.cpu.debugger():
        pass


AGAIN = f"""
import cupola.cpu
from cupola import Device, LaunchConfig, Program, launch
source = {SOURCE!r}
device = Device()
device.set_current()
stream = device.create_stream()
x = device.allocate(256, stream=stream)
compiled = []
for what in ("fails", "fails beside another error", "passes"):
    try:
        with cupola.cpu.debugger() as debugger:
            if not compiled:
                compiled.append(Program(source, "c++").compile("cubin").get_kernel("halt"))
            debugger.breakpoint("halt", block=0)  # of code that an earlier debugger knew, too
            watch = debugger.watch("27:i")
            debugger.delete(watch)

            @debugger.on_stop
            def look(stop):
                print("stopped", stop.line)
                assert what == "passes", "a mistake of the program"

            launch(stream, LaunchConfig(grid=2, block=32), compiled[0], x, 9)
            stream.sync()
            print("went on", debugger.watches, watch.values)
            if what == "fails beside another error":
                raise KeyError("another")
    except (AssertionError, KeyError) as error:
        print(type(error).__name__, error)
"""


def test_an_error_of_a_function_that_is_told_is_raised_at_the_end():
    done = processes.run([sys.executable, "-c", AGAIN])
    assert done.stdout.split("\n") == [
        "stopped 23", "went on [] []", "AssertionError a mistake of the program",
        "stopped 23", "went on [] []", "KeyError 'another'",
        "stopped 23", "went on [] []", "",
    ], done.stdout + done.stderr  # fmt: skip
    assert done.stderr.count("AssertionError: a mistake of the program") == 1


def test_a_condition_that_has_no_value_stops(run, stops):
    run.debugger.breakpoint("walk", condition="nothing > 1", temporary=True)
    seen = stops(lambda stop: stop.explanation)
    run.walk()
    assert len(seen) == 1
    assert "cannot be evaluated: there is no variable 'nothing' here" in seen[0]


def test_a_stop_ends(run, stops):
    run.debugger.breakpoint("walk", temporary=True)
    seen = stops(lambda stop: stop)
    run.walk()
    with pytest.raises(RuntimeError, match="this stop is over"):
        seen[0].evaluate("i")
