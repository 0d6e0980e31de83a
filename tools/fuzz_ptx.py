#!/usr/bin/env python
"""Load, compile and launch changed PTX on the CPU device, and report what it does not survive.

    tools/fuzz_ptx.py --seeds 0:2000
    tools/fuzz_ptx.py --show 17
    tools/fuzz_ptx.py --images --seeds 0:20000

A seed stands for a text (tests/cpu/fuzz/mutation.py), the same on every computer; with ``--images``, for the bytes of
an image, PTX, cubin or fat binary (tests/cpu/fuzz/image_mutation.py), which is loaded or linked with options that may
be bad, too. Defects are a process that crashes, a compiler that hangs or raises something else than a CUDA error, and
errors that a bad kernel cannot explain. The seeds of errors that were found and fixed are kept in
`tests/cpu/fuzz/test_pipeline.py` and `test_images.py`.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))


def main() -> int:
    from tests.cpu.fuzz import image_mutation, mutation
    from tests.cpu.fuzz.campaign import campaign

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0:200", help="first:end")
    parser.add_argument("--show", type=int, help="print the text of a seed")
    parser.add_argument("--images", action="store_true", help="change images, not the text of PTX")
    options = parser.parse_args()
    if options.show is not None:
        if options.images:
            sys.stdout.buffer.write(image_mutation.mutant(options.show)[1])
        else:
            print(mutation.mutant(options.show), end="")
        return 0
    first, _, end = options.seeds.partition(":")
    counts: Counter[str] = Counter()
    for outcome in campaign(list(range(int(first), int(end))), child="image_child" if options.images else "child"):
        counts[outcome.text.split()[0] if outcome.is_defect else outcome.text] += 1
        if outcome.is_defect:
            print(outcome.seed, outcome.text, flush=True)
    print(", ".join(f"{count} {what}" for what, count in counts.most_common()))
    return 1 if counts["ERROR"] else 0


if __name__ == "__main__":
    sys.exit(main())
