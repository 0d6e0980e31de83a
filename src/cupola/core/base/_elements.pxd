"""The types of elements, a bit each: what an array has, and what a kernel's pointer points to.

A launch compares the two with one operation. Integers of one width share a bit, since what is signed is a matter of how
the bits are read; single bytes, structures and whatever has no bit are ANY_ELEMENT, which fits everything.
"""

cdef enum:
    INT16 = 1
    INT32 = 2
    INT64 = 4
    FLOAT16 = 8
    BFLOAT16 = 16
    FLOAT32 = 32
    FLOAT64 = 64
    COMPLEX64 = 128
    COMPLEX128 = 256
    ANY_ELEMENT = 0xFFFF
