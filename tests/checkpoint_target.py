"""A process to be checkpointed: it runs lines of Python that the test sends, and answers with what they give.

    with Target("x = device.allocate(64, stream=stream)") as target:
        assert target.run("x.size") == 64

The names that the lines have are in `NAMES`.
"""

from __future__ import annotations

import ast
import ctypes
import json
import os
import queue
import signal
import sys
import threading
from typing import Any

PTX = """
.version 7.0
.target sm_75
.address_size 64
.visible .global .u32 counter = 7;

.visible .entry increment(.param .u64 x)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [x];
    ld.global.u32 %r1, [%rd1];
    add.u32 %r1, %r1, 1;
    st.global.u32 [%rd1], %r1;
    mov.u64 %rd2, counter;
    ld.global.u32 %r2, [%rd2];
    add.u32 %r2, %r2, 10;
    st.global.u32 [%rd2], %r2;
    ret;
}

.visible .entry spin(.param .u64 flag)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    .reg .pred %p<2>;
    ld.param.u64 %rd1, [flag];
again:
    ld.volatile.global.u32 %r1, [%rd1];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra again;
    ret;
}
"""


class Target:
    """A child process that runs lines of Python. `setup` is run at once, without CUDA when `cuda` is false."""

    def __init__(self, setup: str = "", *, cuda: bool = True, **environment: str) -> None:
        from tests import processes  # which the child has no need of

        self._process = processes.Child(
            [sys.executable, __file__],
            stdin=processes.PIPE,
            stdout=processes.PIPE,
            bufsize=1,
            env={**os.environ, **environment},
        )
        self.pid = self._process.pid
        self._answers: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.run(("begin()\n" if cuda else "") + (setup or "0"))

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put(json.dumps(["error", "the process has ended"]))

    def tell(self, source: str) -> None:
        """Send lines without waiting for the answer."""
        assert self._process.stdin
        self._process.stdin.write(json.dumps(source) + "\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        """What the last expression gave."""
        from tests import limits

        kind, text = json.loads(self._answers.get(timeout=limits.seconds()))
        assert kind == "value", text
        return ast.literal_eval(text)

    def is_silent(self, seconds: float = 0.3) -> bool:
        """Whether it has not answered yet, though it had some time."""
        try:
            self._answers.put(self._answers.get(timeout=seconds))
        except queue.Empty:
            return True
        return False

    def run(self, source: str) -> Any:
        """Run lines and wait for what the last one gives, if it is an expression."""
        self.tell(source)
        return self.answer()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Target:
        return self

    def __exit__(self, *error: object) -> None:
        if self._process.poll() is None:
            os.kill(self.pid, signal.SIGCONT)
        self.kill()


# ---- the child ----------------------------------------------------------------------------------------

NAMES: dict[str, Any] = {"os": os, "ctypes": ctypes, "threading": threading, "PTX": PTX}


def begin() -> None:
    """Make a device current, and the names that most tests want."""
    import cupola
    from cupola.bindings import driver
    from cupola.checkpoint import Process

    def ok(result: tuple[Any, ...]) -> Any:
        if result[0] != 0:
            raise RuntimeError(result[0].name)
        return result[1] if len(result) == 2 else result[1:]

    device = cupola.Device(0)
    device.set_current()
    stream = device.create_stream()
    code = cupola.ObjectCode.from_ptx(PTX.encode())
    flag = cupola.LegacyPinnedMemoryResource().allocate(64, stream=stream)
    one = cupola.LaunchConfig(grid=1, block=1)

    def put(pointer: int, data: bytes) -> None:
        ok(driver.cuMemcpyHtoD(pointer, data, len(data)))

    def get(pointer: int, size: int = 4) -> bytes:
        data = bytearray(size)
        ok(driver.cuMemcpyDtoH(data, pointer, size))
        return bytes(data)

    def number(pointer: int) -> int:
        return int.from_bytes(get(pointer), "little")

    def set_flag(value: int) -> None:
        ctypes.memset(int(flag.handle), value, 4)

    def spin() -> None:
        """Begin a kernel that ends when the flag is set."""
        set_flag(0)
        cupola.launch(stream, one, code.get_kernel("spin"), flag)

    def increment(buffer: Any) -> None:
        cupola.launch(stream, one, code.get_kernel("increment"), buffer)

    def zeros(size: int = 64) -> Any:
        buffer = device.allocate(size, stream=stream)
        buffer.fill(0, stream=stream)
        stream.sync()
        return buffer

    NAMES.update({name: value for name, value in locals().items() if name not in NAMES})
    NAMES.update(cupola=cupola, driver=driver, Process=Process)


def run(source: str) -> Any:
    body = ast.parse(source).body
    last = body[-1]
    if not isinstance(last, ast.Expr):
        return exec(compile(ast.Module(body, []), "target", "exec"), NAMES)
    exec(compile(ast.Module(body[:-1], []), "target", "exec"), NAMES)
    return eval(compile(ast.Expression(last.value), "target", "eval"), NAMES)


def main() -> None:
    NAMES["begin"] = begin
    for line in sys.stdin:
        try:
            answer = ["value", repr(run(json.loads(line)))]
        except BaseException as error:
            answer = ["error", f"{type(error).__name__}: {error}"]
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
