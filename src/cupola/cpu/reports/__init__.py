"""What the CPU device says about kernels that went wrong: faults in words, and the findings of checks."""

from cupola.cpu.reports.faults import describe
from cupola.cpu.reports.findings import add, add_fault, add_unset_copy

__all__ = ["add", "add_fault", "add_unset_copy", "describe"]
