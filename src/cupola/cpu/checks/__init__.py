"""What the CPU device says about a kernel that went wrong."""

from cupola.cpu.checks.faults import describe

__all__ = ["describe"]
