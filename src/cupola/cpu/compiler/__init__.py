"""The compiler of the CPU device: images of device code to machine code of the host.

Its rooms import downward only, from the last one of this list to the first: `ptx` (text to syntax tree), `passes` (what
holds after them), `objects` (machine code and where it is kept), `images` (what PTX comes in, and how it is linked),
`emit` (LLVM IR). On top are `frontend` and `modules`, which the driver calls.
"""
