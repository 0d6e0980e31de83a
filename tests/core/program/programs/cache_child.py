"""One of many processes that use, limit, empty and damage a cache: its folder and a seed are the arguments."""

import contextlib
import random
import sys

from cupola.utils import FileStreamProgramCache


def code(key):
    return key.encode() * 500


path, seed = sys.argv[1], int(sys.argv[2])
limit = 40_000 if seed % 2 else None
cache = FileStreamProgramCache(path, max_size_bytes=limit)
rng = random.Random(seed)
hits = 0
for _ in range(300):
    key = f"key {rng.randrange(40)}"
    found = cache.get(key)
    if found is None:
        cache[key] = code(key)
    else:
        assert found == code(key), (key, found[:40])
        hits += 1
    if rng.random() < 0.03:
        with contextlib.suppress(KeyError):
            del cache[key]
    if rng.random() < 0.005:
        cache.clear()
    if rng.random() < 0.02:  # what a bad disk does
        try:
            with open(cache._path_of(key), "r+b") as file:
                file.truncate(rng.randrange(600))
        except FileNotFoundError:
            pass
print(hits)
