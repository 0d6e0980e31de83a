"""Enumerations of the bindings: members, errors, and values without a name."""

from __future__ import annotations

import copy
import pickle

import pytest

from cupola.bindings import driver, nvrtc, runtime

E = driver.CUresult


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (lambda: repr(E.CUDA_ERROR_INVALID_VALUE), "<CUresult.CUDA_ERROR_INVALID_VALUE: 1>"),
        (lambda: str(E(1)), "<CUresult.CUDA_ERROR_INVALID_VALUE: 1>"),
        (lambda: f"{E(1)}", "<CUresult.CUDA_ERROR_INVALID_VALUE: 1>"),
        (lambda: f"{E(1):03d}", "001"),
        (lambda: repr(E), "<enum 'CUresult'>"),
        (lambda: (E(2).name, E(2).value, type(E(2).value)), ("CUDA_ERROR_OUT_OF_MEMORY", 2, int)),
        (lambda: E(1) is E.CUDA_ERROR_INVALID_VALUE, True),
        (lambda: E["CUDA_ERROR_INVALID_VALUE"] is E(1), True),
        (lambda: (E(1) == 1, E(1) < 2, hash(E(1)) == hash(1), bool(E(0))), (True, True, True, False)),
        (lambda: (type(E(1) | 4), E(1) | 4), (int, 5)),
        (lambda: (0 in E, 123456 in E, "x" in E, E(1) in E), (True, False, False, True)),
        (lambda: isinstance(E(1), int) and isinstance(E(1), E), True),
        (lambda: pickle.loads(pickle.dumps(E(1))) is E(1), True),
        (lambda: copy.deepcopy(E(1)) is E(1), True),
        (lambda: len(driver.CUctx_flags), 11),
        (lambda: len(list(driver.CUctx_flags)), 11),
        (lambda: len(driver.CUctx_flags.__members__), 12),
        (lambda: driver.CUctx_flags.CU_CTX_BLOCKING_SYNC.name, "CU_CTX_SCHED_BLOCKING_SYNC"),
        (lambda: driver.CUctx_flags.CU_CTX_BLOCKING_SYNC is driver.CUctx_flags.CU_CTX_SCHED_BLOCKING_SYNC, True),
        (lambda: driver.CUstreamAttrID is driver.CUlaunchAttributeID, True),
        (lambda: (E.__module__, E.__name__, E.__qualname__), ("cupola.bindings.driver", "CUresult", "CUresult")),
        (lambda: E.__doc__, "Error codes"),
        (lambda: E.CUDA_ERROR_OUT_OF_MEMORY.__doc__[:38], "The API call failed because it was una"),
        (lambda: (driver.CUoutput_mode.CU_OUT_CSV, runtime.cudaRoundMode.cudaRoundMinInf), (1, 3)),
        (lambda: repr(nvrtc.nvrtcResult(11)), "<nvrtcResult.NVRTC_ERROR_INTERNAL_ERROR: 11>"),
    ],
)
def test_behaviour(value, expected):
    assert value() == expected


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (lambda: E(99999), ValueError, "99999 is not a valid CUresult"),
        (lambda: E("x"), ValueError, "'x' is not a valid CUresult"),
        (lambda: E(), TypeError, "value"),
        (lambda: E["X"], KeyError, "X"),
        (lambda: E.NOTHING, AttributeError, "NOTHING"),
        (lambda: driver.CUnothing, AttributeError, "module 'cupola.bindings.driver' has no attribute 'CUnothing'"),
    ],
)
def test_errors(value, error, message):
    with pytest.raises(error, match=message):
        value()


def test_a_value_that_is_not_in_the_table_still_reads():
    """A newer driver may return one, and flags may be united in a field."""
    location = driver.CUmemLocation(type=77)
    assert (location.type, location.type.name) == (77, "UNKNOWN_77")
    assert repr(location.type) == "<CUmemLocationType.UNKNOWN_77: 77>"
