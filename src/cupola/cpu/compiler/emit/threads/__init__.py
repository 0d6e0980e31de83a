"""Which threads a body runs, and where what they have lives: the shape of blocks, registers, variables, numbers."""
