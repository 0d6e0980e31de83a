"""Generate the CUDA bindings: NVIDIA's headers -> a committed IR (``codegen/ir``) -> C, Cython and stub files.

``python -m codegen parse --older FOLDER`` reads the newest headers and those of the CUDA major before them (one folder
with the headers of all wheels of that major) with libclang and rewrites the IR. ``python -m codegen history
LIBCUDART...`` records in which version each symbol of the runtime appeared. ``python -m codegen emit`` turns the IR and
the hand-kept facts of ``codegen/overrides`` into the files under ``src/cupola/bindings``, and ``python -m codegen emit
--check`` only compares them. Users of cupola need none of this.
"""
