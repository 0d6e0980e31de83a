"""Calls of the runtime module with a libcudart of choice, in a process of its own."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

# The path of the library is the argument, a list of expressions the input. Prints the list of what they give: statuses
# without results as numbers, exceptions as pairs of name and message.
PROGRAM = """
import ctypes, sys
import cupola.pathfinder as pathfinder
path = sys.argv[1]
pathfinder.load_nvidia_dynamic_lib = lambda name: pathfinder.LoadedDL(path, False, ctypes.CDLL(path)._handle, "test")
from cupola.bindings import _provider, driver, runtime
_provider._emulated_runtime = lambda: None
memory = bytearray(8)
def outcome(call):
    try:
        result = eval(call, globals())
        return int(result[0]) if type(result) is tuple and len(result) == 1 else result
    except Exception as error:
        return type(error).__name__, str(error)
print([outcome(call) for call in eval(sys.stdin.read())])
"""


def installed(major: int) -> Path:
    """NVIDIA's libcudart of a CUDA major, from the wheels."""
    spec = importlib.util.find_spec("nvidia")
    folder = {13: "cu13", 12: "cuda_runtime"}[major]
    for root in (spec.submodule_search_locations or []) if spec else []:
        path = Path(root) / folder / "lib" / f"libcudart.so.{major}"
        if path.exists():
            return path
    pytest.skip(f"needs the wheel {'nvidia-cuda-runtime' + ('-cu12' if major == 12 else '')}")
