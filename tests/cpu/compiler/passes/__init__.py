"""Tests of the passes over the syntax tree."""
