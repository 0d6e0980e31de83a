"""Generate the CUDA bindings: NVIDIA's headers -> a committed IR (``bindgen/ir``) -> C, Cython and stub files.

``python -m bindgen parse --older FOLDER`` reads the newest headers and those of the CUDA major before them (one folder
with the headers of all wheels of that major) with libclang and rewrites the IR. ``python -m bindgen history
LIBCUDART...`` records in which version each symbol of the runtime appeared. ``python -m bindgen emit`` turns the IR and
the hand-kept facts of ``bindgen/overrides`` into the files under ``src/cupola/bindings``, and ``python -m bindgen emit
--check`` only compares them. Users of cupola need none of this.
"""
