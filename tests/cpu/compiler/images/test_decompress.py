"""Entries of fat binaries, decompressed: by hand, as the library makes them, and damaged."""

from __future__ import annotations

import base64
import random

import pytest

from cupola.cpu.compiler.images import decompress

TEXT = b"".join(b"add.s32 %%r%d, %%r%d, %d;\n" % (n, n // 2, n * n) for n in range(200))


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (b"", b""),
        (b"\x30abc", b"abc"),
        (b"\x12a\x01\x00\x10z", b"a" + b"a" * 6 + b"z"),  # a match that overlaps what it writes
        (b"\x3fabc\x03\x00\xff\x00\x00", (b"abc" * 100)[: 3 + 4 + 15 + 255]),
        (b"\xf0\x05" + bytes(range(20)), bytes(range(20))),
    ],
)
def test_lz4(block, expected):
    assert decompress.lz4_block(block, len(expected)) == expected


@pytest.mark.parametrize(
    ("block", "size"),
    [
        (b"\x30ab", 3),
        (b"\x30abc", 2),
        (b"\x30abc", 4),
        (b"\x10a\x05\x00\x00", 9),
        (b"\x10a\x00\x00\x00", 9),
        (b"\xf0", 9),
    ],
)
def test_damaged_lz4(block, size):
    with pytest.raises(ValueError, match=r"ends too early|longer than|outside|there are"):
        decompress.lz4_block(block, size)


def frame(*blocks: tuple[int, int, bytes]) -> bytes:
    """A frame of blocks: kind, size, content."""
    out = b"\x28\xb5\x2f\xfd\x00\x58"
    for n, (kind, size, content) in enumerate(blocks, 1):
        out += (size << 3 | kind << 1 | (n == len(blocks))).to_bytes(3, "little") + content
    return out


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (frame((0, 3, b"abc")), b"abc"),
        (frame((1, 1000, b"x"), (0, 1, b"y")), b"x" * 1000 + b"y"),
        (frame((2, 5, b"\x18abc\x00")), b"abc"),  # literals only
    ],
)
def test_zstandard(data, expected):
    assert decompress.zstandard(data, len(expected)) == expected


ZSTANDARD = base64.b64decode(
    """
    KLUv/QBoXR4A+lcAChPAF4YD1vEP5CYpk0wySRMK7wpYoQCaAJQAHknmCIeEV5VPLa95KTSWlWcYMuOdOo+iTIPMWZibiJmYRfk2pNUHSfUm7j
    A4tZztW5PWNHblrREORsfZpe1LbhmJz7IMuRHPqPKKiZQxYTBl/iTiwjAha52tFk8imsQcemhieY6wNXLtWGGIBeevFGF47UXzlDfkzKfulrXm
    xi1iQ2z1WhhaL1mEQTwcTxjYS4Vh3AAGYgiDAIFyIFBQQBCcbO3Q3EbhtkWME9uqtsdqrxV7u1HMwoljw9gm5lWwsYdjEms0xtiCscUiIiYMMb
    FF/W/49UdP91j+MD63FPWvS17X/Iq1R6yEYeLj6dVSq+4hKl/ENSRNeYKEga1XWaqksebxKqLRqJU+tcLC8KLzQ2SiMg09Q6ZS6ZQRas2kNWYU
    8QmaqXfpll8t2SNiD9mxHxUG1vdF3NYYFml5NoxyZh4JdfaoUGaNiTlbFLlZxHBitiD5rvG1uodH6jyZuBvGOJ2Fgu3eBqWrFxSGsVvVty7CD4
    pulO+yNv6S3VQjmd8qy4asjcxzospepomsLJmyebTJIu4J2WrvXEvc4s55xJlqxNzQs+FMMix3biZcqzpyq7txEW04uHndt/Ly2l6W0eaplLch
    ZbP5J3W7KQADC1/+NfjX96gS+rxW+RtGyXwWE/V7SSJfXTa/VS37IuaJb6SR11qZVu1+hWr+VFwbsjI1Twlbe1VEauVkrM1EWS2ijEdtDcppLe
    9FO2VCNNOjTBs6ZGgmhggDlXb+FFprbtJWnqNFvCZo8xTvlayW9yoieZ4hsTckcTy/zHr3mOK19OiNH86L8ESFt+Lws/p9zV6XNAuB4qgRwDxy
    qaQ1wScpdMGMRYgWSOBjq/L+GOdWl/02Hrt7Sr1rpr+ZLu8b42512c/Gs8meUt616W9mukbT5f0x3K0u+214dveUeqdNfzNdSOwp9a5N92a6vD
    +Gu9Vlvw3P7p5S77Tpb2Z6o9KFZE+p59r0N9Ol+2PcrS7123h29yj1rk1/U7q8P8bKRpf9Np61e0q9a5O/mS7vD+NuddlvxbO7p9RzQPspiyAE
    X9sz52ek03vm/Iywcnx17FnnZ4TL8aljz5wFk0U5vjr2mPMz0vU6c35GurZnzs8IF8dXx545FkxrfSY832Wtz4jnu6z1MfF8l7V2Jp7vsqbPxL
    N4mdZn4vku1vqMFW5jqnvHpcf83KYrpe+lN1E2U0nplbIfpRH+ARxXG+B+D8QqtlT5/XyhPF1WHl2CZXl1vTh1EWSk7gZdWgU=
    """
)


def test_zstandard_with_all_tables():
    assert decompress.zstandard(ZSTANDARD, len(TEXT)) == TEXT


def test_damaged_zstandard():
    """Whatever is changed, nothing but ValueError comes of it, and no more than was promised."""
    generator = random.Random(5)
    for _ in range(400):
        data = bytearray(ZSTANDARD)
        for _ in range(generator.randrange(1, 4)):
            data[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
        try:
            assert len(decompress.zstandard(bytes(data), len(TEXT))) == len(TEXT)
        except ValueError:
            continue
    for end in range(0, len(ZSTANDARD), 7):
        with pytest.raises(ValueError, match=r"."):
            decompress.zstandard(ZSTANDARD[:end], len(TEXT))
