"""Which functions the installed nvJitLink has."""

from __future__ import annotations

from ._libraries import inspector

_inspect_function_pointer = inspector("nvJitLink", "nvJitLink")
