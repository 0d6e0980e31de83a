"""The parameters of MTGP32's generators, which are in a header of cuRAND.

The 200 sets are those that Saito's and Matsumoto's "dynamic creator" has found for the exponent 11213; cuRAND's
generator uses the first 192.
"""

from __future__ import annotations

import functools
import re
import struct
from pathlib import Path

LANES = 192
HEADER = "curand_mtgp32dc_p_11213.h"


@functools.cache
def tables(kind: int) -> bytes:
    """Of each generator position, two shifts, mask, and the tables of the recursion and of the tempering, as words.

    Parameters
    ----------
    kind
        The ``curandRngType``, which is MTGP32's.

    Raises
    ------
    ImportError
        NVIDIA's header is not installed, or is not as expected.
    """
    from cupola.pathfinder import find_nvidia_header_directory

    folder = find_nvidia_header_directory("curand")
    path = Path(folder or "") / HEADER
    needed = f"MTGP32 has the parameters of NVIDIA's header {HEADER}: pip install nvidia-curand"
    if not folder or not path.is_file():
        raise ImportError(needed)
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
    # Of a set: exponent, position, shifts, three tables of 16, mask, and the 21 bytes of a hash.
    sets = re.findall(r"\{\s*11213,.*?\}\s*\}", text, re.S)
    parameters = [[int(number, 0) for number in re.findall(r"0x[0-9a-fA-F]+|\b\d+\b", one)] for one in sets]
    if len(parameters) < LANES or any(len(one) != 4 + 48 + 1 + 21 for one in parameters):
        raise ImportError(f"{needed} ({path} is another version)")
    return b"".join(
        struct.pack("36I", one[1], one[2], one[3], one[52], *one[4:20], *one[20:36]) for one in parameters[:LANES]
    )
