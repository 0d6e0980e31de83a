"""Resources: what devices and contexts have, splits of multiprocessors, descriptors. Figures are those of an H200."""

from __future__ import annotations

from typing import Any

import pytest

from cupola.bindings import driver
from tests.conftest import on_cpu_device
from tests.cpu.driver.calls import driver_version, explanation, ok, status

SM = driver.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM
WORKQUEUES = driver.CUdevResourceType.CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG
IGNORE, LARGEST = 1, 2
BACKFILL = 1

structured = pytest.mark.skipif(
    not on_cpu_device() and driver_version() < 13010, reason="the driver is older than CUDA 13.1"
)
h200_model = pytest.mark.skipif(not on_cpu_device(), reason="figures of the modeled GPU; cards of a name differ")


@pytest.fixture
def whole(context):
    return ok(driver.cuDeviceGetDevResource(0, SM))


def by_count(resource: Any, least: int, flags: int = 0, groups: int = 64) -> tuple[list[int], int]:
    made, count, rest = ok(driver.cuDevSmResourceSplitByCount(groups, resource, flags, least))
    return [group.sm.smCount for group in made[:count]], rest.sm.smCount


def group(count: int = 0, together: int = 0, preferred: int = 0, flags: int = 0) -> Any:
    made = driver.CU_DEV_SM_RESOURCE_GROUP_PARAMS()
    made.smCount, made.coscheduledSmCount, made.preferredCoscheduledSmCount, made.flags = (
        count,
        together,
        preferred,
        flags,
    )
    return made


def test_what_a_device_and_its_context_have(context, whole):
    count = ok(driver.cuDeviceGetAttribute(driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0))
    assert (whole.type, whole.sm.smCount) == (SM, count)
    assert whole.sm.minSmPartitionSize == whole.sm.smCoscheduledAlignment in (2, 8)
    assert ok(driver.cuCtxGetDevResource(context, SM)).sm.smCount == count


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: driver.cuDeviceGetDevResource(0, driver.CUdevResourceType(0)), "CUDA_ERROR_INVALID_RESOURCE_TYPE"),
        (lambda: driver.cuDeviceGetDevResource(0, 2), "CUDA_ERROR_INVALID_RESOURCE_TYPE"),
        (lambda: driver.cuDeviceGetDevResource(99, SM), "CUDA_ERROR_INVALID_DEVICE"),
        (lambda: driver.cuCtxGetDevResource(0, SM), "CUDA_ERROR_INVALID_CONTEXT"),
        (lambda: driver.cuGreenCtxGetDevResource(0, SM), "CUDA_ERROR_INVALID_CONTEXT"),
    ],
)
def test_what_is_refused(context, call, expected):
    assert status(call()) == expected
    if on_cpu_device():
        assert explanation(call())


# (flags, at least, groups, multiprocessors of each, rest), as cuDevSmResourceSplitByCount gave on an H200
BY_COUNT = [
    (0, 0, 15, 8, 12),
    (0, 1, 15, 8, 12),
    (0, 8, 15, 8, 12),
    (0, 9, 8, 16, 4),
    (0, 16, 8, 16, 4),
    (0, 17, 5, 24, 12),
    (0, 25, 4, 32, 4),
    (0, 33, 3, 40, 12),
    (0, 41, 2, 48, 36),
    (0, 56, 2, 56, 20),
    (0, 57, 2, 64, 4),
    (0, 65, 1, 72, 60),
    (0, 97, 1, 104, 28),
    (0, 121, 1, 128, 4),
    (0, 129, 1, 132, 0),
    (0, 132, 1, 132, 0),
    (IGNORE, 0, 64, 2, 4),
    (IGNORE, 3, 33, 4, 0),
    (IGNORE, 5, 22, 6, 0),
    (IGNORE, 9, 13, 10, 2),
    (IGNORE, 13, 9, 14, 6),
    (IGNORE, 19, 6, 20, 12),
    (IGNORE, 43, 3, 44, 0),
    (IGNORE, 61, 2, 62, 8),
    (IGNORE, 131, 1, 132, 0),
    (LARGEST, 7, 15, 8, 12),
    (LARGEST, 16, 8, 16, 4),
    (LARGEST, 25, 4, 32, 4),
    (LARGEST, 124, 1, 128, 4),
    (4, 16, 8, 16, 4),  # flags that it does not know are none
]


@h200_model
@pytest.mark.parametrize(("flags", "least", "groups", "size", "rest"), BY_COUNT)
def test_split_by_count(whole, flags, least, groups, size, rest):
    assert by_count(whole, least, flags) == ([size] * groups, rest)
    fewer = min(groups, 2)
    assert by_count(whole, least, flags, fewer) == ([size] * fewer, 132 - fewer * size)


@pytest.mark.parametrize(("flags", "extra", "expected"), [(0, 1, "CONFIGURATION"), (IGNORE, 2, "CONFIGURATION")])
def test_more_than_there_are(whole, flags, extra, expected):
    result = driver.cuDevSmResourceSplitByCount(1, whole, flags, whole.sm.smCount + extra)
    assert status(result) == f"CUDA_ERROR_INVALID_RESOURCE_{expected}"
    if on_cpu_device():
        assert "any multiple of" in explanation(result)


def test_both_flags_contradict_each_other(whole):
    assert status(driver.cuDevSmResourceSplitByCount(1, whole, IGNORE | LARGEST, 8)) == "CUDA_ERROR_INVALID_VALUE"


def test_groups_cannot_be_split_again(whole):
    made, _count, rest = ok(driver.cuDevSmResourceSplitByCount(2, whole, 0, 16))
    for part in (made[0], rest):
        result = driver.cuDevSmResourceSplitByCount(1, part, 0, 8)
        assert status(result) == "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION"


def test_counts_are_not_for_writing(whole):
    whole.sm.smCount -= 8
    assert status(driver.cuDevSmResourceSplitByCount(1, whole, 0, 8)) == "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION"


def test_records_that_nobody_filled(context):
    nothing = driver.CUdevResource()
    assert status(driver.cuDevSmResourceSplitByCount(1, nothing, 0, 8)) == "CUDA_ERROR_INVALID_RESOURCE_TYPE"
    nothing.type = SM
    assert status(driver.cuDevSmResourceSplitByCount(1, nothing, 0, 8)) == "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION"


# ---- structured splits: since CUDA 13.1; rules of cuda.h -------------------------------------------------------------


def split(whole: Any, *groups: Any) -> tuple[list[int], int]:
    made, rest = ok(driver.cuDevSmResourceSplit(len(groups), whole, 0, list(groups)))
    return [part.sm.smCount for part in made], rest.sm.smCount


@h200_model
@pytest.mark.parametrize(
    ("groups", "sizes", "rest"),
    [
        ([group(16)], [16], 116),
        ([group(16), group(32)], [16, 32], 84),
        ([group(8, 4), group(0, 2, flags=BACKFILL)], [8, 124], 0),
        ([group(10, 2)], [10], 122),
        ([group(10, flags=BACKFILL)], [10], 122),
        ([group(0)], [120], 12),  # in eights of one GPC
        ([group(0, 16)], [112], 20),
        ([group(0, 16, 32)], [112], 20),
        ([group(64), group(0)], [64, 56], 12),
        ([group(132, 2)], [132], 0),
    ],
)
def test_structured_split(whole, groups, sizes, rest):
    assert split(whole, *groups) == (sizes, rest)


@h200_model
@pytest.mark.parametrize(
    ("groups", "says"),
    [
        ([group(134)], "there are 132"),
        ([group(10)], "must be a multiple of 8"),
        ([group(9, 2)], "must be a multiple of 2"),
        ([group(12, 5)], "coscheduledSmCount of group 0 is 5"),
        ([group(64, 64)], "at most 32"),
        ([group(16, 8, 12)], "preferredCoscheduledSmCount"),
        ([group(128)], "only 120"),
        ([group(64), group(64)], "group 1"),
        ([group(132, 2), group(0, 2)], "nothing is left for group 1"),
        ([group(8, flags=2)], "no locality domains"),
    ],
)
def test_structured_splits_that_cannot_be(whole, groups, says):
    result = driver.cuDevSmResourceSplit(len(groups), whole, 0, groups)
    assert status(result) == "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION"
    assert says in explanation(result)


@structured
def test_the_rest_can_be_split_again(whole):
    _made, rest = ok(driver.cuDevSmResourceSplit(1, whole, 0, [group(16)]))
    sizes, _ = split(rest, group(8))
    assert sizes == [8]


@structured
def test_flags_of_a_structured_split_are_for_later(whole):
    assert status(driver.cuDevSmResourceSplit(1, whole, 1, [group(16)])) == "CUDA_ERROR_INVALID_VALUE"


# ---- descriptors -----------------------------------------------------------------------------------------------------


def test_groups_of_one_split_add_up(context, whole):
    made, _count, _rest = ok(driver.cuDevSmResourceSplitByCount(3, whole, 0, 8))
    description = ok(driver.cuDevResourceGenerateDesc(made[:2], 2))
    green = ok(driver.cuGreenCtxCreate(description, 0, 1))
    assert ok(driver.cuGreenCtxGetDevResource(green, SM)).sm.smCount == 2 * made[0].sm.smCount
    ok(driver.cuGreenCtxDestroy(green))


@pytest.mark.parametrize(("flags", "least", "of_group", "of_rest"), [(0, 16, 8, 2), (IGNORE, 6, 2, 2)])
def test_alignment_in_a_green_context(context, whole, flags, least, of_group, of_rest):
    """As on an H200; the groups themselves do not say it."""
    if whole.sm.smCoscheduledAlignment != 8:
        pytest.skip("the device has pairs of multiprocessors only")
    made, _count, rest = ok(driver.cuDevSmResourceSplitByCount(1, whole, flags, least))
    for parts, alignment in (([made[0]], of_group), ([made[0], rest], of_rest)):
        assert parts[0].sm.smCoscheduledAlignment == 0
        green = ok(driver.cuGreenCtxCreate(ok(driver.cuDevResourceGenerateDesc(parts, len(parts))), 0, 1))
        found = ok(driver.cuGreenCtxGetDevResource(green, SM)).sm
        assert (found.minSmPartitionSize, found.smCoscheduledAlignment) == (alignment, alignment)
        ok(driver.cuGreenCtxDestroy(green))


@structured
@pytest.mark.parametrize("which", ["twice", "of two splits", "with all"])
def test_groups_that_do_not_belong_together(whole, which):
    made, _count, _rest = ok(driver.cuDevSmResourceSplitByCount(2, whole, 0, 8))
    other, _count, _rest = ok(driver.cuDevSmResourceSplitByCount(2, whole, 0, 8))
    parts = [made[0], {"twice": made[0], "of two splits": other[1], "with all": whole}[which]]
    assert status(driver.cuDevResourceGenerateDesc(parts, 2)) == "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION"


@pytest.mark.cpu_only
def test_a_descriptor_of_nothing(context):
    assert status(driver.cuDevResourceGenerateDesc([], 0)) == "CUDA_ERROR_INVALID_VALUE"  # an H200's driver crashes
    assert status(driver.cuDevResourceGenerateDesc([driver.CUdevResource()], 1)) == "CUDA_ERROR_INVALID_RESOURCE_TYPE"
    assert status(driver.cuGreenCtxCreate(0, 0, 1)) == "CUDA_ERROR_INVALID_VALUE"


@pytest.mark.cpu_only
def test_a_green_context_needs_multiprocessors(context):
    queues = ok(driver.cuDeviceGetDevResource(0, WORKQUEUES))
    description = ok(driver.cuDevResourceGenerateDesc([queues], 1))
    assert status(driver.cuGreenCtxCreate(description, 0, 1)) == "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION"


# ---- workqueues ------------------------------------------------------------------------------------------------------


@structured
def test_workqueues(context, whole):
    queues = ok(driver.cuDeviceGetDevResource(0, WORKQUEUES))
    assert (queues.type, int(queues.wqConfig.device)) == (WORKQUEUES, 0)
    assert queues.wqConfig.wqConcurrencyLimit >= 1
    assert queues.wqConfig.sharingScope == driver.CUdevWorkqueueConfigScope.CU_WORKQUEUE_SCOPE_DEVICE_CTX
    balanced = driver.CUdevWorkqueueConfigScope.CU_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED
    queues.wqConfig.sharingScope, queues.wqConfig.wqConcurrencyLimit = balanced, 3
    green = ok(driver.cuGreenCtxCreate(ok(driver.cuDevResourceGenerateDesc([whole, queues], 2)), 0, 1))
    found = ok(driver.cuGreenCtxGetDevResource(green, WORKQUEUES)).wqConfig
    assert (found.sharingScope, found.wqConcurrencyLimit) == (balanced, 3)
    ok(driver.cuGreenCtxDestroy(green))


@pytest.mark.cpu_only
@pytest.mark.parametrize("text, limit", [("", 8), ("2", 2), ("100", 32), ("0", 8), ("many", 8)])
def test_the_environment_says_how_many_workqueues(run_python, text, limit):
    done = run_python(
        """
from cupola.bindings import driver
driver.cuInit(0)
queues = driver.CUdevResourceType.CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG
print(driver.cuDeviceGetDevResource(0, queues)[1].wqConfig.wqConcurrencyLimit)
""",
        CUDA_DEVICE_MAX_CONNECTIONS=text,
    )
    assert done.stdout.split() == [str(limit)], done.stderr


@structured
def test_a_workqueue_of_another_context(context, whole):
    kind = driver.CUdevResourceType.CU_DEV_RESOURCE_TYPE_WORKQUEUE
    queue = ok(driver.cuCtxGetDevResource(context, kind))
    green = ok(driver.cuGreenCtxCreate(ok(driver.cuDevResourceGenerateDesc([whole, queue], 2)), 0, 1))
    ok(driver.cuGreenCtxDestroy(green))
    assert ok(driver.cuDeviceGetDevResource(0, kind)).type == kind  # cuda.core 1.2 asks for it


@structured
def test_what_a_stream_has(make_stream):
    stream = make_stream()
    assert ok(driver.cuStreamGetDevResource(stream, SM)).sm.smCount >= 2
    assert status(driver.cuStreamGetDevResource(stream, WORKQUEUES)) == "CUDA_ERROR_INVALID_RESOURCE_TYPE"
