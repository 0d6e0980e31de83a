"""Chromium without a window, driven by what its DevTools understand, through a pair of pipes."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
from pathlib import Path
from typing import Any

from tests import limits, processes


def find() -> str | None:
    """The program of a browser that understands DevTools, or None."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome-headless-shell")
    return next((path for path in map(shutil.which, names) if path is not None), None)


class Browser:
    """A page in a browser that reaches no network, with what the page has asked for and complained of.

    Attributes
    ----------
    asked
        The addresses of everything that was loaded, the page itself included.
    said
        What the console has, and exceptions that nobody has caught.
    """

    def __init__(self, program: str, folder: Path, page: Path) -> None:
        self.asked: list[str] = []
        self.said: list[str] = []
        self._left, self._count = b"", 0
        self._session: str | None = None
        (theirs_in, self._out), (self._in, theirs_out) = os.pipe(), os.pipe()
        # The browser reads from 3 and writes to 4.
        redirect = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe",
                   "--host-resolver-rules=MAP * ~NOTFOUND", "--window-size=1200,700",
                   f"--user-data-dir={folder}"]  # fmt: skip
        self._process = processes.Child(
            ["bash", "-c", redirect, "browser", program, *options, "about:blank"],
            pass_fds=(theirs_in, theirs_out), stdout=processes.DEVNULL, stderr=processes.DEVNULL,
        )  # fmt: skip
        os.close(theirs_in)
        os.close(theirs_out)
        target = self.do("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.do("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Network", "Runtime", "Log", "Page"):
            self.do(f"{domain}.enable")
        self.do("Page.navigate", url=page.as_uri())
        there = f"{page.as_uri()}complete"
        limits.until(lambda: self.value("location.href + document.readyState") == there, lambda: self.said)

    def do(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Have the browser do something; returns its answer."""
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._count:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return dict(answer["result"])
            self._note(answer)

    def value(self, expression: str) -> Any:
        """The value of an expression of JavaScript in the page."""
        answer = self.do("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """An event of the mouse: ``mouseMoved``, ``mousePressed``, ``mouseReleased`` or ``mouseWheel``."""
        self.do("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def picture(self) -> bytes:
        """The page as a PNG file."""
        return base64.b64decode(self.do("Page.captureScreenshot", format="png")["data"])

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *error: object) -> None:
        """End the browser."""
        os.close(self._out)  # which it takes for an order
        os.close(self._in)
        self._process.wait()

    def _next(self) -> dict[str, Any]:
        limit = limits.for_children()
        while b"\0" not in self._left:
            ready, _, _ = select.select([self._in], [], [], 1)
            assert ready or limit.left(limits.CHILDREN) > 0, "the browser does not answer"
            if not ready:
                continue
            read = os.read(self._in, 1 << 16)
            assert read, f"the browser has ended with status {self._process.wait()}"
            self._left += read
        text, _, self._left = self._left.partition(b"\0")
        return dict(json.loads(text))

    def _note(self, event: dict[str, Any]) -> None:
        method, told = event.get("method"), event.get("params", {})
        if method == "Network.requestWillBeSent":
            self.asked.append(told["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.said.append(told["exceptionDetails"]["text"])
        elif method == "Runtime.consoleAPICalled":
            self.said.append(json.dumps(told["args"]))
        elif method == "Log.entryAdded":
            self.said.append(told["entry"]["text"])
