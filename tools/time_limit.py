"""A plugin of pytest: tests that would begin after the time CUPOLA_TESTS_UNTIL (of the monotonic clock) are skipped."""

from __future__ import annotations

import os
import time

import pytest

UNTIL = float(os.environ["CUPOLA_TESTS_UNTIL"])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if time.monotonic() > UNTIL:
        pytest.skip("the time is over: `make test` runs it")
