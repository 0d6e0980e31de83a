"""PTX text to syntax tree.

`parse` is the way in; `ast` has the tree, `errors` what it raises, `grammar` the instruction set.
"""

from cupola.cpu.compiler.ptx.errors import PtxError, PtxSyntaxError, PtxUnsupportedError
from cupola.cpu.compiler.ptx.parser import parse

__all__ = ["PtxError", "PtxSyntaxError", "PtxUnsupportedError", "parse"]
