"""The roofline of the modeled GPU as a picture (SVG): what its memory and its arithmetic allow at most.

A kernel stands where its arithmetic intensity is, at the height that the model could reach there. It is a limit, and no
time is measured or guessed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

from .model import Kernel

WIDTH, HEIGHT = 760, 440
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 20, 40, 50

_COLOURS = ("#4c78c8", "#d6454f", "#2f9e5b", "#d99a1c", "#8a5cc2", "#20a0a8", "#c25c9a", "#777777")


def bandwidth(model: dict[str, Any]) -> float:
    """Bytes a second of the device's memory, which moves data at both edges of its clock."""
    return 2e3 * float(model["memory_clock"]) * float(model["memory_bus"]) / 8


def peak(model: dict[str, Any], *, double: bool = False) -> float:
    """Operations a second in single or double precision, two for each multiply-add, without tensor cores."""
    lanes = 64 if (model["major"], model["minor"]) in ((7, 5), (8, 0)) else 128
    single = 2e3 * model["multiprocessors"] * lanes * model["clock"]
    return float(single / model["double_ratio"] if double else single)


def ridge(model: dict[str, Any]) -> float:
    """Operations for each byte from which on arithmetic in single precision limits, and below which memory does."""
    return peak(model) / bandwidth(model)


def draw(model: dict[str, Any], kernels: Sequence[Kernel]) -> str:
    """The picture."""
    found = [(kernel, value) for kernel in kernels if (value := kernel.total.intensity)]
    low, high = 0.01, 1000.0
    for _, value in found:
        low, high = min(low, 10 ** math.floor(math.log10(value))), max(high, 10 ** math.ceil(math.log10(value)))
    top = 10 ** math.ceil(math.log10(peak(model)))
    bottom = 10 ** math.floor(math.log10(bandwidth(model) * low))

    def x(value: float) -> float:
        return _LEFT + (WIDTH - _LEFT - _RIGHT) * math.log(value / low) / math.log(high / low)

    def y(value: float) -> float:
        return HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * math.log(value / bottom) / math.log(top / bottom)

    parts = []
    for power in range(round(math.log10(low)), round(math.log10(high)) + 1):
        at = x(10.0**power)
        parts.append(f'<path class="grid" d="M{at:.1f} {_TOP}V{HEIGHT - _BOTTOM}"/>')
        parts.append(f'<text x="{at:.1f}" y="{HEIGHT - _BOTTOM + 18}" text-anchor="middle">{10.0**power:g}</text>')
    for power in range(round(math.log10(bottom)), round(math.log10(top)) + 1):
        at = y(10.0**power)
        parts.append(f'<path class="grid" d="M{_LEFT} {at:.1f}H{WIDTH - _RIGHT}"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{_short(10.0**power)}</text>')
    for name, height in (("single precision", peak(model)), ("double precision", peak(model, double=True))):
        begin = height / bandwidth(model)
        parts.append(f'<path class="roof" d="M{x(begin):.1f} {y(height):.1f}H{WIDTH - _RIGHT}"/>')
        label = f"{_short(height)} operations/s, {name}"
        parts.append(f'<text x="{WIDTH - _RIGHT - 4}" y="{y(height) - 6:.1f}" text-anchor="end">{label}</text>')
    begin, end = x(low), x(ridge(model))
    slope = f"M{begin:.1f} {y(bandwidth(model) * low):.1f}L{end:.1f} {y(peak(model)):.1f}"
    parts.append(f'<path class="roof" d="{slope}"/>')
    middle = math.sqrt(low * ridge(model))
    angle = -math.degrees(math.atan2(y(bandwidth(model) * low) - y(peak(model)), end - begin))
    parts.append(
        f'<text transform="translate({x(middle):.1f} {y(bandwidth(model) * middle) - 8:.1f}) rotate({angle:.1f})" '
        f'text-anchor="middle">{_short(bandwidth(model))} bytes/s of memory</text>'
    )
    for number, (kernel, value) in enumerate(found):
        colour = _COLOURS[number % len(_COLOURS)]
        height = min(peak(model), bandwidth(model) * value)
        pole = f"M{x(value):.1f} {y(height):.1f}V{HEIGHT - _BOTTOM}"
        parts.append(f'<path d="{pole}" stroke="{colour}" stroke-dasharray="4 3"/>')
        parts.append(f'<circle cx="{x(value):.1f}" cy="{y(height):.1f}" r="5" fill="{colour}"/>')
        label = f"{kernel.name}: {value:.3g} operations a byte"
        parts.append(f'<text x="{_LEFT + 14}" y="{_TOP + 14 + 16 * number}" fill="{colour}">{escape(label)}</text>')
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="system-ui, sans-serif" font-size="12" fill="#333">'
    )
    style = "<style>path{fill:none}.grid{stroke:#ddd}.roof{stroke:#333;stroke-width:2}</style>"
    ground = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>'
    title = f'<text x="{_LEFT}" y="22" font-size="15">{escape(model["name"])}: what it allows at most</text>'
    axis = (
        f'<text x="{(WIDTH + _LEFT) / 2:.0f}" y="{HEIGHT - 12}" text-anchor="middle">'
        "floating-point operations for each byte of global memory</text>"
    )
    return "\n".join([head, style, ground, title, axis, *parts, "</svg>", ""])


def _short(value: float) -> str:
    for unit, size in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g}"
