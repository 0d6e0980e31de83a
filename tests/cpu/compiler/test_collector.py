"""The garbage collector pauses while the compiler works, and is afterwards as it was."""

from __future__ import annotations

import gc

import pytest

from cupola.cpu.compiler import collector


@pytest.fixture(autouse=True)
def enabled():
    gc.enable()
    yield
    gc.enable()


def test_it_is_off_until_the_last_user_leaves():
    with collector.paused():
        with collector.paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_an_error_turns_it_on_again():
    with pytest.raises(KeyError), collector.paused():
        raise KeyError
    assert gc.isenabled()


def test_a_program_without_it_stays_without():
    gc.disable()
    with collector.paused():
        pass
    assert not gc.isenabled()
