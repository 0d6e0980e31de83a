"""
2. Find the race
================

A data race is a kernel whose result depends on which thread comes first. It may be right a thousand times. The CPU
device can tell, because it sees every access.
"""

# %%
# A kernel that looks right
# -------------------------
#
# The threads of a block add up 64 numbers in shared memory, in six rounds. One barrier is missing. (Checks are for the
# CPU device. Where there is a GPU, start Jupyter with ``CUPOLA_DEVICE=cpu``.)

import numpy as np

import cupola
from cupola import cpu

dev = cupola.Device()
dev.set_current()

source = r"""
extern "C" __global__ void total(const int* x, int* out) {
    __shared__ int part[64];
    int t = threadIdx.x;
    part[t] = x[t];
    __syncthreads();
    for (int k = 32; k > 0; k /= 2) {
        if (t < k)
            part[t] += part[t + k];
    }
    if (t == 0)
        *out = part[0];
}
"""
options = {"lineinfo": True, "name": "total.cu"}
total = cupola.compile(source, options=options).get_kernel("total")
x, out = dev.array(np.arange(64, dtype=np.int32)), dev.zeros(1, np.int32)
total[1, 64](x, out)
print(out.to_numpy()[0], "and it should be", sum(range(64)))

# %%
# The result is right here. Is the kernel? On an H200 the same program printed 426.

with cpu.checks(race=True) as checks:
    total[1, 64](x, out)
print(checks.findings[0])

# %%
# Each finding names two accesses, their threads and their lines, and says what to do.
#
# The kernel, mended
# ------------------
#
# All threads of the block must reach ``__syncthreads()``, so it stands behind the ``if``.

mended = source.replace("part[t] += part[t + k];", "part[t] += part[t + k];\n        __syncthreads();")
total = cupola.compile(mended, options=options).get_kernel("total")
with cpu.checks(race=True, sync=True) as checks:
    total[1, 64](x, out)
print(len(checks.findings), "findings, and the sum is", out.to_numpy()[0])

# %%
# A barrier in the wrong place
# ----------------------------
#
# Inside of the ``if``, only some threads reach the barrier. On a GPU that may hang, or work by luck.

wrong = source.replace("part[t] += part[t + k];", "{ part[t] += part[t + k]; __syncthreads(); }")
total = cupola.compile(wrong, options=options).get_kernel("total")
try:
    with cpu.checks(sync=True) as checks:
        total[1, 64](x, out)
except cupola.CUDAError as error:
    print(error)
print(len(checks.findings), "findings. The first one:")
print(checks.findings[0])

# %%
# Other checks find memory that nobody has written (``init``) and memory that is never freed (``leak``). From the
# command line: ``cupola run --check race,init,sync program.py``, and for tests ``pytest --cupola-check race``.
