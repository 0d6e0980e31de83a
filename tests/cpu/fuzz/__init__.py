"""Fuzzers of PTX and images."""
