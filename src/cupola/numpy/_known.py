"""What modules above hand down to the arrays: the ufuncs by name, and the namespace itself."""

from __future__ import annotations

from typing import Any

UFUNCS: dict[str, Any] = {}
NAMESPACE: list[Any] = []  # the module, once it is imported
