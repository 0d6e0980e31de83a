"""Tests of the engine, which runs grids."""
