"""What forms give that no GPU recorded, since an H200 does not have them: computed from the text of the ISA.

A module of this folder has the name of a table in `forms`, and a function ``results(form, rows)``, which gives the
patterns of each output register by row, as a GPU would. `test_computed.py` compares them with the CPU device, which
stands for the GPU that a form's target names.
"""
