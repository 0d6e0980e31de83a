"""What NVIDIA's assembler, the one in nvJitLink, says about forms: whether a GPU could run them at all."""

from __future__ import annotations

from collections.abc import Sequence

from cupola.bindings import nvjitlink
from tests.ptx.forms import Form
from tests.ptx.programs import module


def complaint(ptx: str, target: str) -> str:
    """The error log of assembling PTX; empty when there is nothing to complain about."""
    handle = nvjitlink.create(1, [f"-arch={target}"])
    try:
        try:
            nvjitlink.add_data(handle, nvjitlink.InputType.PTX, ptx.encode(), len(ptx), "forms.ptx")
            nvjitlink.complete(handle)
        except nvjitlink.nvJitLinkError as error:
            log = bytearray(nvjitlink.get_error_log_size(handle))
            if log:
                nvjitlink.get_error_log(handle, log)
            return log.rstrip(b"\0").decode().strip() or str(error)
        return ""
    finally:
        nvjitlink.destroy(handle)


def refused(forms: Sequence[Form]) -> dict[str, str]:
    """The forms that cannot be assembled, with the reason; of one version and target, or of several."""
    found: dict[str, str] = {}
    groups: dict[tuple[object, object], list[Form]] = {}
    for form in forms:
        groups.setdefault((form.options.get("version"), form.options.get("target")), []).append(form)
    for group in groups.values():
        found |= _halved(group)
    return found


def _halved(group: list[Form]) -> dict[str, str]:
    log = complaint(module(group), str(group[0].options.get("target", "sm_90")))
    if not log:
        return {}
    if len(group) == 1:
        return {group[0].line: log}
    half = len(group) // 2
    return _halved(group[:half]) | _halved(group[half:])
