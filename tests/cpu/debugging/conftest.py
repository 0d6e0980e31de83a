"""A folder with the source of the kernels, where the debugger finds its lines."""

from __future__ import annotations

import os

import pytest

from .test_session import SOURCE


@pytest.fixture(scope="session")
def sources(tmp_path_factory):
    path = tmp_path_factory.mktemp("sources")
    (path / "walk.cu").write_text(SOURCE)
    return path


@pytest.fixture(scope="module", autouse=True)
def folder(sources):
    before = os.getcwd()
    os.chdir(sources)
    yield
    os.chdir(before)
