# Scalars as kernels take them.

cdef union Value:
    int64_t i
    uint64_t u
    double d
    float f
    double z[2]
    float c[2]


# How kernels take the scalars of a type.
cdef enum Form:
    SIGNED
    UNSIGNED
    FLOAT
    DOUBLE
    COMPLEX_FLOAT
    COMPLEX_DOUBLE

cdef Form _forms[TYPES]


cdef int _fill_forms() except -1:
    cdef int number
    for number, char in enumerate(_CHARS):
        _forms[number] = {
            "L": UNSIGNED, "Q": UNSIGNED, "I": UNSIGNED, "e": FLOAT, "f": FLOAT, "d": DOUBLE, "F": COMPLEX_FLOAT,
            "D": COMPLEX_DOUBLE,
        }.get(char, SIGNED)
    return 0


_fill_forms()


cdef int scalar_kind(object scalar) except -1:
    cdef object number = _class_numbers.get(type(scalar))
    return number if number is not None else type_number(scalar.dtype)


cdef int store(object scalar, int kind, Value* to) except -1:
    """The value of a scalar of a type as kernels take it: a half as the float that it is computed as."""
    cdef Form form = _forms[kind]
    cdef object whole       # a conversion to C's complex numbers would lose the sign of a zero
    if form == DOUBLE:
        to.d = <double>scalar
    elif form == FLOAT:
        to.f = <float><double>scalar
    elif form == COMPLEX_DOUBLE:
        whole = complex(scalar)
        to.z[0], to.z[1] = PyComplex_RealAsDouble(whole), PyComplex_ImagAsDouble(whole)
    elif form == COMPLEX_FLOAT:
        whole = complex(scalar)
        to.c[0], to.c[1] = <float>PyComplex_RealAsDouble(whole), <float>PyComplex_ImagAsDouble(whole)
    elif form == UNSIGNED:
        to.u = <uint64_t>int(scalar)
    else:
        to.i = <int64_t>int(scalar)
    return 0
