"""Tests of the grammar, lexer, parser and linker of PTX."""
