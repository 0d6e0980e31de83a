"""LaunchConfig: what it takes and how it shows."""

from __future__ import annotations

import copy
import pickle
import weakref

import numpy as np
import pytest

from cupola import CUDAError, LaunchConfig


class TestExtents:
    @pytest.mark.parametrize(
        ("given", "stored"),
        [
            (5, (5, 1, 1)),
            (True, (1, 1, 1)),
            ((), (1, 1, 1)),
            ((4,), (4, 1, 1)),
            ((4, 3), (4, 3, 1)),
            ((4, 3, 2), (4, 3, 2)),
            (np.int64(7), (7, 1, 1)),
            ((np.uint8(7), 2), (7, 2, 1)),
        ],
    )
    @pytest.mark.parametrize("field", ["grid", "block"])
    def test_forms(self, field, given, stored):
        config = LaunchConfig(**{"grid": 1, "block": 1, field: given})
        assert getattr(config, field) == stored
        setattr(config, field, 9)
        setattr(config, field, given)
        assert getattr(config, field) == stored

    @pytest.mark.parametrize(
        ("given", "error", "text"),
        [
            (None, ValueError, "must be an int or a tuple"),
            ([1, 2], ValueError, "must be an int or a tuple"),
            (1.0, ValueError, "must be an int or a tuple"),
            ("1", ValueError, "must be an int or a tuple"),
            ((1, 2, 3, 4), ValueError, "at most 3"),
            ((1, 2.0), ValueError, "must be an int or a tuple"),
            (0, ValueError, "must be >= 1"),
            ((1, -1), ValueError, "must be >= 1"),
            (1 << 32, OverflowError, "32 bits"),
        ],
    )
    @pytest.mark.parametrize("field", ["grid", "block"])
    def test_bad(self, field, given, error, text):
        with pytest.raises(error, match=f"{field} .*{text}"):
            LaunchConfig(**{"grid": 1, "block": 1, field: given})
        config = LaunchConfig(grid=2, block=3)
        with pytest.raises(error, match=text):
            setattr(config, field, given)
        assert (config.grid, config.block) == ((2, 1, 1), (3, 1, 1))


class TestSharedMemory:
    @pytest.mark.parametrize(("given", "stored"), [(None, 0), (0, 0), (1024, 1024), (10.7, 10), (np.int32(8), 8)])
    def test_sizes(self, given, stored):
        assert LaunchConfig(grid=1, block=1, shmem_size=given).shmem_size == stored

    @pytest.mark.parametrize(
        ("given", "error"), [("1", TypeError), ([], TypeError), (-1, ValueError), (1 << 32, OverflowError)]
    )
    def test_bad(self, given, error):
        with pytest.raises(error, match="shmem_size"):
            LaunchConfig(grid=1, block=1, shmem_size=given)


def test_positions_and_repr():
    config = LaunchConfig((2, 3), None, 64, 16, False, True)
    assert repr(config) == (
        "LaunchConfig(grid=(2, 3, 1), cluster=None, block=(64, 1, 1), shmem_size=16, is_cooperative=False, "
        "programmatic_stream_serialization=True)"
    )


def test_equality_and_hash():
    config = LaunchConfig(grid=1, block=2)
    same = LaunchConfig(grid=(1, 1, 1), block=(2,))
    assert config == same and hash(config) == hash(same)
    for field, value in (("grid", 2), ("block", 3), ("shmem_size", 4), ("programmatic_stream_serialization", True)):
        other = LaunchConfig(**{"grid": 1, "block": 2, field: value})
        assert config != other
    assert config != "config"
    assert type("Mine", (LaunchConfig,), {})(grid=1, block=2) == config


@pytest.mark.parametrize("do", [pickle.dumps, copy.copy, copy.deepcopy])
def test_not_copied(do):
    with pytest.raises(TypeError):
        do(LaunchConfig(grid=1, block=1))


def test_attributes_are_fixed():
    config = LaunchConfig(grid=1, block=1)
    with pytest.raises(AttributeError):
        config.speed = 1
    assert weakref.ref(config)() is config


def test_unknown_and_older_keywords(device):
    with pytest.raises(TypeError, match="speed"):
        LaunchConfig(grid=1, block=1, speed=2)
    with pytest.warns(DeprecationWarning, match="is_cooperative="):
        assert LaunchConfig(grid=1, block=1, cooperative_launch=True).is_cooperative
    with pytest.raises(TypeError, match="give one of them"):
        LaunchConfig(grid=1, block=1, cooperative_launch=True, is_cooperative=True)


def test_cluster(device):
    if not device.properties.cluster_launch:
        with pytest.raises(CUDAError, match="clusters"):
            LaunchConfig(grid=1, cluster=2, block=32)
        return
    config = LaunchConfig(grid=(4, 2), cluster=2, block=32)
    assert config.cluster == (2, 1, 1) and config.grid == (4, 2, 1)
    config.cluster = None
    assert config.cluster is None and config == LaunchConfig(grid=(4, 2), block=32)
    with pytest.raises(OverflowError, match="grid times cluster"):
        LaunchConfig(grid=1 << 31, cluster=2, block=1)


@pytest.mark.parametrize(
    ("n", "options", "grid", "block"),
    [
        (1000, {}, (4, 1, 1), (256, 1, 1)),
        (1024, {}, (4, 1, 1), (256, 1, 1)),
        (0, {}, (1, 1, 1), (256, 1, 1)),
        (1, {"block": 32}, (1, 1, 1), (32, 1, 1)),
        ((640, 480), {"block": (16, 16)}, (40, 30, 1), (16, 16, 1)),
        ((100, 3), {"block": 64}, (2, 3, 1), (64, 1, 1)),
        (10, {"block": (4, 2, 2)}, (3, 1, 1), (4, 2, 2)),
    ],
)
def test_for_elements(n, options, grid, block):
    config = LaunchConfig.for_elements(n, **options)
    assert (config.grid, config.block) == (grid, block)


def test_for_elements_passes_options_on():
    assert LaunchConfig.for_elements(10, shmem_size=64).shmem_size == 64


@pytest.mark.parametrize(
    ("arguments", "error"),
    [((-1,), ValueError), ((5, 0), ValueError), (((1, 2, 3, 4),), ValueError), ((1.5,), TypeError)],
)
def test_for_elements_refuses(arguments, error):
    with pytest.raises(error):
        LaunchConfig.for_elements(*arguments)
