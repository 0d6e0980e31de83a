"""
3. Profile a kernel, and improve it
===================================

What does a kernel cost? Time needs a GPU, and differs from run to run. Counters need none and do not differ: how many
instructions, how much memory, how well it is used. ``cupola profile`` counts on the CPU device.
"""

# %%
# A matrix, transposed
# --------------------
#
# Each thread reads one element and writes it to its new place. The threads of a warp read neighbours, but they write
# a column: 32 places that are far apart.

import subprocess
import sys
import tempfile
from pathlib import Path

folder = Path(tempfile.mkdtemp())

program = '''
import numpy as np

import cupola

dev = cupola.Device()
dev.set_current()
source = r"""
const int N = 128;
extern "C" __global__ void transpose(float* out, const float* in) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    out[x * N + y] = in[y * N + x];
}
"""
transpose = cupola.compile(source).get_kernel("transpose")
matrix = np.arange(128 * 128, dtype=np.float32).reshape(128, 128)
a, b = dev.array(matrix), dev.empty((128, 128), np.float32)
transpose[(4, 4), (32, 32)](b, a)
assert (b.to_numpy() == matrix.T).all()
'''


def profile(text: str) -> None:
    """At the prompt: cupola profile transpose.py."""
    (folder / "transpose.py").write_text(text)
    command = [sys.executable, "-m", "cupola", "profile", "transpose.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    print(done.stdout + done.stderr)


profile(program)

# %%
# The stores move eight times as much memory as they need. A GPU reads and writes *sectors* of 32 bytes; a store of a
# warp that touches 32 sectors to write 128 bytes wastes most of them.
#
# Through shared memory
# ---------------------
#
# A block reads a tile by rows, and writes it by rows. The detour turns the tile.

KERNEL = """
    __shared__ float tile[32][32];
    int x = blockIdx.x * 32, y = blockIdx.y * 32;
    tile[threadIdx.y][threadIdx.x] = in[(y + threadIdx.y) * N + x + threadIdx.x];
    __syncthreads();
    out[(x + threadIdx.y) * N + y + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
"""
head, _, tail = program.partition("    int x =")
_, _, tail = tail.partition("in[y * N + x];\n")
through_tiles = head + KERNEL.lstrip("\n") + tail
profile(through_tiles)

# %%
# The sectors are as few as can be. Now shared memory is the problem: it has 32 *banks*, and a column of the tile lies
# in one of them, so the 32 threads of a warp wait for each other.
#
# One more column
# ---------------
#
# With rows of 33 numbers, the elements of a column lie in 32 banks.

profile(through_tiles.replace("tile[32][32]", "tile[32][33]"))

# %%
# No sector and no bank is wasted. On a GPU, ``cupola bench`` and ``cupola profile --timeline`` measure what that is
# worth.
