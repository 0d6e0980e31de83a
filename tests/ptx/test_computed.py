"""Forms that an H200 does not have give what the ISA's text says, on the GPUs that have them (`computed`)."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.ptx.device_forms import Runner, input_rows
from tests.ptx.forms import Form, computed_families, forms, model_of
from tests.ptx.recording import difference

_CASES = [
    (family, model) for family in computed_families() for model in sorted({model_of(form) for form in forms(family)})
]


def chosen(family: str, model: str) -> list[Form]:
    return [form for form in forms(family) if model_of(form) == model]


def run(family: str, model: str, path: str) -> None:
    """Write the outputs of the forms that a model has; in a process that stands for it."""
    runner = Runner(chosen(family, model))
    Path(path).write_text(json.dumps([runner.run(form) for form in chosen(family, model)]))


@pytest.mark.parametrize(("family", "model"), _CASES, ids=lambda part: part)
def test_forms(family: str, model: str, tmp_path: Path, run_python: Callable[..., CompletedProcess[str]]) -> None:
    path = tmp_path / "outputs.json"
    done = run_python(
        f"from tests.ptx.test_computed import run\nrun({family!r}, {model!r}, {str(path)!r})",
        CUPOLA_DEVICE="cpu",
        CUPOLA_CPU_MODEL=model,
    )
    assert done.returncode == 0, done.stderr
    results: Callable[..., list[list[int]]] = import_module(f"tests.ptx.computed.{family}").results
    wrong = []
    for form, found in zip(chosen(family, model), json.loads(path.read_text()), strict=True):
        said = difference(form, found, results(form, input_rows(form)))
        if said is not None:
            wrong.append(said)
    assert not wrong, f"{len(wrong)} forms differ:\n" + "\n".join(wrong[:20])
