"""Control flow (PTX ISA 9.7.12). The parser brings a call into the shape (returns), function, (arguments)."""

INSTRUCTIONS = """
# 9.7.12 Control Flow
bra{.uni} target
brx.idx{.uni} index, targets
call{.uni} (d), function, (a){, prototype}
ret{.uni}
exit
"""
