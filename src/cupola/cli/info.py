"""``cupola info``: what this installation runs on."""

from __future__ import annotations

import json

from .installation import Facts, collect
from .output import rows, show


def run(*, as_json: bool = False) -> int:
    """Print what was found; the exit status is 1 when no device can be used."""
    facts = collect()
    show(json.dumps(facts, indent=2) if as_json else as_text(facts))
    return 1 if "error" in facts["device"] else 0


def as_text(facts: Facts) -> str:
    """The facts as a table for people."""
    device = facts["device"]
    table = [
        ("cupola", facts["cupola"]),
        ("python", f"{facts['python']['version']} ({facts['python']['executable']})"),
        ("CUPOLA_DEVICE", facts["environment"]["CUPOLA_DEVICE"] or "auto (not set)"),
    ]
    if "error" in device:
        table.append(("device", f"none: {device['error']}"))
    else:
        table += [("provider", device["provider"]), ("CUDA version", device["cuda_version"])]
        table += [(f"device {i}", describe_device(found)) for i, found in enumerate(device["list"])]
    sections = [rows(table)]
    for title in ("libraries", "headers", "packages"):
        found = {"cuda": facts["driver"], **facts[title]} if title == "libraries" else facts[title]
        sections.append([title, *rows([("  " + name, describe(fact)) for name, fact in found.items()])])
    return "\n\n".join("\n".join(lines) for lines in sections)


def describe(fact: Facts) -> str:
    """One line for something that was found, or was not."""
    if "error" in fact:
        return f"unusable: {first_line(fact['error'])}"
    if "missing" in fact:
        return "not found"
    found = [fact.get("version") or "version unknown"]
    if fact.get("path"):
        found.append(fact["path"])
    if fact.get("found_via"):
        found.append(f"({fact['found_via']})")
    return "  ".join(found)


def describe_device(device: Facts) -> str:
    """One line for a device: its name, architecture and limits."""
    return (
        f"{device['name']}, sm_{device['arch']}, {device['multiprocessors']} SMs, "
        f"{device['threads_per_block']} threads a block, "
        f"{device['shared_memory_per_block'] // 1024} KiB shared memory a block"
    )


def first_line(text: str) -> str:
    """The first line of a message."""
    return text.splitlines()[0] if text else ""
