"""Plain-text tables."""

from __future__ import annotations

from collections.abc import Sequence


def rows(cells: Sequence[Sequence[str]]) -> list[str]:
    """Lines with columns as wide as their widest cell; the last column is as long as it is."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)][:-1]
    return [
        "  ".join([*(f"{cell:{width}}" for cell, width in zip(row, widths, strict=False)), row[-1]]) for row in cells
    ]
