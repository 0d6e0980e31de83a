"""What lines of cuBLASLt need besides the functions: a product with its descriptors in one call.

``mm(68, 0, L(0, 3, 4, 4), As, L(0, 4, 2, 4), Bs, L(0, 3, 2, 4), Cs, L(0, 3, 2, 4), Rs, epilogue=4, bias=xs)`` is one
product: compute type, scale type, then a layout (type, rows, columns, leading dimension) and an address for A, B, C and
D each, and attributes of the operation by name. Its answer is the status of the product, behind those of the calls
before it that failed. ``heuristic`` asks for algorithms with the same arguments instead; ``transform`` is a
transformation.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

# Attributes of an operation: number, bytes.
OPERATION = {
    "pointer_mode": (2, 4), "transa": (3, 4), "transb": (4, 4), "transc": (5, 4), "fill": (6, 4), "epilogue": (7, 4),
    "bias": (8, 8), "bias_stride": (10, 8), "aux": (11, 8), "aux_ld": (12, 8), "aux_stride": (13, 8),
    "alpha_stride": (14, 8), "a_scale": (17, 8), "b_scale": (18, 8), "c_scale": (19, 8), "d_scale": (20, 8),
    "amax": (21, 8), "aux_type": (22, 4), "aux_scale": (23, 8), "aux_amax": (24, 8), "fast": (25, 1),
    "bias_type": (26, 4), "a_mode": (31, 4), "b_mode": (32, 4),
    "c_mode": (33, 4), "d_mode": (34, 4),
}  # fmt: skip
LAYOUT = {"order": (1, 4), "batch": (5, 4), "stride": (6, 8), "plane": (7, 8), "batch_mode": (8, 4)}
TRANSFORM = {"pointer_mode": (1, 4), "transa": (2, 4), "transb": (3, 4)}
SCALE = {0: "s", 1: "d", 2: "h", 4: "c", 5: "z", 10: "i", 14: "b"}  # letters of the bench for scale types
ROOM = 96  # bytes of a result of the heuristic


def names(function: Callable[[str], Callable[..., int]], places: dict[str, Any]) -> dict[str, Any]:
    """The names for lines, given the library's functions and the addresses of the bench's memory."""

    def make(name: str, attributes: dict[str, tuple[int, int]], values: dict[str, int], *arguments: int) -> Any:
        slot, statuses = ctypes.c_void_p(), []
        status = function(f"cublasLt{name}Create")(ctypes.addressof(slot), *arguments)
        statuses.append(status)
        for key, value in values.items() if not status else ():
            number, size = attributes[key]
            word = ctypes.c_longlong(value)
            statuses.append(
                function(f"cublasLt{name}SetAttribute")(slot.value or 0, number, ctypes.addressof(word), size)
            )
        return slot.value or 0, [s for s in statuses if s]

    def layout(kind: int, rows: int, columns: int, ld: int, **values: int) -> Any:
        return lambda: make("MatrixLayout", LAYOUT, values, kind, rows, columns, ld)

    def product(call: Callable[..., Any], compute: int, scale: int, operands: tuple[Any, ...], values: Any) -> Any:
        """Make the descriptors, call, destroy them."""
        alpha = values.pop("alpha", places.get(f"two_{SCALE.get(scale, 's')}"))
        beta = values.pop("beta", places.get(f"half_{SCALE.get(scale, 's')}"))
        workspace, size = values.pop("workspace", 0), values.pop("size", 0)
        operation, failed = make("MatmulDesc", OPERATION, values, compute, scale)
        layouts = []
        for operand in operands[::2]:
            made, statuses = operand() if operand else (0, [])
            failed += statuses
            layouts.append(made)
        answer = call(operation, layouts, operands[1::2], alpha, beta, workspace, size)
        for made in filter(None, layouts):
            function("cublasLtMatrixLayoutDestroy")(made)
        if operation:
            function("cublasLtMatmulDescDestroy")(operation)
        return (*failed, *answer)

    def matmul(compute: int, scale: int, *operands: Any, **values: Any) -> Any:
        def call(operation: int, layouts: Any, addresses: Any, alpha: int, beta: int, workspace: int, size: int) -> Any:
            pairs = [x for pair in zip(addresses, layouts, strict=True) for x in pair]
            status = function("cublasLtMatmul")(
                places["h"], operation, alpha, *pairs[:4], beta, *pairs[4:], 0, workspace, size, 0
            )
            return (status,)

        return product(call, compute, scale, operands, values)

    def heuristic(compute: int, scale: int, *operands: Any, count: int = 1, **values: Any) -> Any:
        def call(operation: int, layouts: Any, addresses: Any, *_: int) -> Any:
            preference, _failed = make("MatmulPreference", {}, {})
            found, results = ctypes.c_int(-1), ctypes.create_string_buffer(ROOM * max(count, 1))
            status = function("cublasLtMatmulAlgoGetHeuristic")(
                places["h"], operation, *layouts, preference, count, ctypes.addressof(results), ctypes.addressof(found)
            )
            function("cublasLtMatmulPreferenceDestroy")(preference)
            return status, "some" if found.value > 0 else found.value

        return product(call, compute, scale, operands, values)

    def transform(scale: int, *operands: Any, **values: Any) -> Any:
        alpha = values.pop("alpha", places.get(f"two_{SCALE.get(scale, 's')}"))
        beta = values.pop("beta", places.get(f"half_{SCALE.get(scale, 's')}"))
        operation, failed = make("MatrixTransformDesc", TRANSFORM, values, scale)
        layouts = []
        for operand in operands[::2]:
            made, statuses = operand() if operand else (0, [])
            failed += statuses
            layouts.append(made)
        a, b, c = operands[1::2]
        status = function("cublasLtMatrixTransform")(
            places["h"], operation, alpha, a, layouts[0], beta, b, layouts[1], c, layouts[2], 0
        )
        for made in filter(None, layouts):
            function("cublasLtMatrixLayoutDestroy")(made)
        if operation:
            function("cublasLtMatrixTransformDescDestroy")(operation)
        return (*failed, status)

    return {"L": layout, "mm": matmul, "heuristic": heuristic, "transform": transform}
