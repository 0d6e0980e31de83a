"""Tests of the CPU device."""
