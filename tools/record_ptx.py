#!/usr/bin/env python
"""Record what a GPU computes for the forms of PTX instructions in tests/ptx/forms.

    tools/record_ptx.py record [--family integer ...] [--again] [--out tests/ptx/recorded]
    tools/record_ptx.py compare [--family integer ...]
    tools/record_ptx.py pending
    tools/record_ptx.py check [--family integer ...]
    tools/record_ptx.py show 'add.sat'

``record`` runs the forms that are not recorded yet (with ``--again`` all of them) on the device that there is, which
must be a GPU, and writes a file for each family. A form that the driver refuses, or that ends in a fault, is named and
left out; the others are still recorded, because separate processes do the work. ``compare`` runs the
recorded forms here and reports all that differ. ``pending`` lists the forms that have no recording, takes the families
that are complete off the list of those that may lack some, and fails if anything is left. ``check`` needs no GPU: it
names the forms that NVIDIA's assembler refuses. ``show`` prints the kernels of the forms that contain a text, with
their inputs and recorded results.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.ptx import recording  # noqa: E402
from tests.ptx.forms import Form, families, forms  # noqa: E402

PATIENCE = 120
"""Seconds without a result after which a form counts as hanging."""


def child(family: str) -> None:
    """Run the forms whose lines stand on the standard input; print a line of JSON for each."""
    from tests.ptx.device_forms import Runner

    wanted = json.load(sys.stdin)
    chosen = [form for form in forms(family) if form.line in set(wanted)]
    runner = Runner(chosen)
    for form in chosen:
        if form.line in runner.refused:
            print(json.dumps({"line": form.line, "error": runner.refused[form.line]}), flush=True)
            continue
        try:
            packed = recording.pack(form, runner.run(form))
        except Exception as error:
            print(json.dumps({"line": form.line, "error": str(error)}), flush=True)
            return  # a fault ends the context, and with it the use of this process
        print(json.dumps({"line": form.line, "packed": packed}), flush=True)


def run_family(family: str, wanted: list[Form]) -> Iterator[tuple[Form, str, str]]:
    """Each form with its packed results, or with what went wrong."""
    left = {form.line: form for form in wanted}
    while left:
        process = subprocess.Popen(
            [sys.executable, __file__, "child", family],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "CUDA_MODULE_LOADING": "EAGER"},  # so that a form is refused before its launch
        )
        why = ""
        try:
            output, errors = process.communicate(json.dumps(list(left)), timeout=PATIENCE)
            why = (errors.strip().splitlines() or [f"exit code {process.returncode}"])[-1]
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
            why = f"no result after {PATIENCE} s"
        for text in output.splitlines():
            if text.startswith("{"):
                answer = json.loads(text)
                yield left.pop(answer["line"]), answer.get("packed", ""), answer.get("error", "")
        if left and (process.returncode or not output.strip()):
            first = next(iter(left))
            yield left.pop(first), "", why


def chosen_families(arguments: argparse.Namespace) -> list[str]:
    return arguments.family or families()


def on_gpu() -> bool:
    from cupola import Device

    return not Device(0).name.startswith("cupola")


def command_record(arguments: argparse.Namespace) -> int:
    if not (on_gpu() or arguments.anywhere):
        print("this is the CPU device; a recording is worth something only if a GPU made it")
        return 2
    start = time.monotonic()
    count = failed = 0
    for family in chosen_families(arguments):
        every = forms(family)
        kept = {} if arguments.again else {f.line: p for f in every if (p := recording.already_packed(f)) is not None}
        for form, packed, error in run_family(family, [form for form in every if form.line not in kept]):
            if error:
                failed += 1
                print(f"{family}: {form.line}\n    {error}", flush=True)
            else:
                count += 1
                kept[form.line] = packed
        results = {recording.digest(form): (form, kept[form.line]) for form in every if form.line in kept}
        recording.write(arguments.out, family, results)
        print(f"{family}: {len(results)} of {len(every)} forms are recorded", flush=True)
    print(f"{count} forms recorded, {failed} failed, {time.monotonic() - start:.0f} s")
    return 1 if failed else 0


def command_compare(arguments: argparse.Namespace) -> int:
    wrong = total = 0
    for family in chosen_families(arguments):
        known = [form for form in forms(family) if recording.already_packed(form) is not None]
        for form, packed, error in run_family(family, known):
            total += 1
            if not error:
                expected = recording.recorded(form)
                assert expected is not None
                error = recording.difference(form, recording.unpack(form, packed), expected) or ""
            if error:
                wrong += 1
                print(f"{family}: {error}", flush=True)
    print(f"{total} forms, {wrong} differ")
    return 1 if wrong else 0


def command_pending(_: argparse.Namespace) -> int:
    listed = recording.pending_families()
    lacking = set()
    for family in families():
        for form in forms(family):
            if recording.already_packed(form) is None:
                lacking.add(family)
                print(f"{family}: {form.line}")
    recording.PENDING.write_text("".join(f"{family}\n" for family in listed if family in lacking))
    for family in sorted(lacking - set(listed)):
        print(f"{family} is not in {recording.PENDING.relative_to(ROOT)}, so that its tests fail")
    return 1 if lacking else 0


def command_check(arguments: argparse.Namespace) -> int:
    from tests.ptx.assembler import refused

    wrong = 0
    for family in chosen_families(arguments):
        for line, log in refused(forms(family)).items():
            wrong += 1
            errors = [text for text in log.splitlines() if "error" in text] or [log]
            print(f"{family}: {line}\n    {errors[0]}", flush=True)
    print(f"{wrong} forms are refused")
    return 1 if wrong else 0


def command_show(arguments: argparse.Namespace) -> int:
    from tests.ptx.device_forms import input_rows
    from tests.ptx.programs import kernel

    for form in (form for family in families() for form in forms(family) if arguments.text in form.line):
        print(kernel(form))
        expected = recording.recorded(form)
        if expected is None:
            print("// not recorded")
            continue
        for row, values in enumerate(input_rows(form)):
            before = ", ".join(f"{name} {value:#x}" for name, value in values.items())
            after = ", ".join(f"{name} {column[row]:#x}" for name, column in zip(form.outputs, expected, strict=True))
            print(f"// {before} -> {after}")
    return 0


def main() -> int:
    if sys.argv[1:2] == ["child"]:
        child(sys.argv[2])
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, metavar="command")
    record = commands.add_parser("record", help="run forms on this GPU and write down what it leaves")
    record.add_argument("--out", type=Path, default=recording.FOLDER, metavar="FOLDER")
    record.add_argument("--again", action="store_true", help="also the forms that are recorded already")
    record.add_argument("--anywhere", action="store_true", help="even on the CPU device, to try the recorder itself")
    record.set_defaults(function=command_record)
    compare = commands.add_parser("compare", help="run the recorded forms here and report differences")
    compare.set_defaults(function=command_compare)
    check = commands.add_parser("check", help="ask NVIDIA's assembler whether the forms are instructions")
    check.set_defaults(function=command_check)
    for command in (record, compare, check):
        command.add_argument("--family", nargs="+", choices=families(), metavar="NAME")
    commands.add_parser("pending", help="list what has no recording").set_defaults(function=command_pending)
    show = commands.add_parser("show", help="print kernels")
    show.add_argument("text")
    show.set_defaults(function=command_show)
    arguments = parser.parse_args()
    return arguments.function(arguments)


if __name__ == "__main__":
    sys.exit(main())
