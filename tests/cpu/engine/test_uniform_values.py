"""Values that are the same for all lanes are computed once, by scalar instructions: they must say what vectors say."""

from __future__ import annotations

import numpy as np
import pytest

from cupola import Device, LaunchConfig, LegacyPinnedMemoryResource, Program, ProgramOptions, Stream, launch

EXTREMA = r"""
extern "C" __global__ void extrema(float a, double b, float* singles, double* doubles) {
    const float f = float(blockIdx.x);      // a number, as the compiler can tell
    const double d = double(blockIdx.x);
    singles[0] = fmaxf(a, f), singles[1] = fmaxf(f, a), singles[2] = fminf(a, f), singles[3] = fminf(f, a);
    doubles[0] = fmax(b, d), doubles[1] = fmax(d, b), doubles[2] = fmin(b, d), doubles[3] = fmin(d, b);
}
"""


@pytest.mark.parametrize("value", [float("nan"), -1.5, 0.0, 7.0, float("inf")])
def test_a_nan_loses_against_a_number(device: Device, stream: Stream, value: float) -> None:
    options = ProgramOptions(arch=f"sm_{device.arch}")
    kernel = Program(EXTREMA, "c++", options).compile("cubin").get_kernel("extrema")
    singles, doubles = (LegacyPinnedMemoryResource().allocate(4 * size) for size in (4, 8))
    launch(stream, LaunchConfig(grid=1, block=32), kernel, np.float32(value), np.float64(value), singles, doubles)
    stream.sync()
    high, low = (0.0, 0.0) if np.isnan(value) else (max(value, 0.0), min(value, 0.0))
    for buffer, dtype in ((singles, np.float32), (doubles, np.float64)):
        assert np.from_dlpack(buffer).view(dtype).tolist() == [high, high, low, low]
        buffer.close()
