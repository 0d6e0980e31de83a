"""Arrays of a device that is not current: what works on them, what is an error, and how they get to another device."""

from __future__ import annotations

from pathlib import Path


def test_arrays_of_two_devices(run_on_devices):
    done = run_on_devices(2, Path(__file__).with_name("two_devices.py"))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n"
