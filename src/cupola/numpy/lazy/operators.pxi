# Operators: calls of functions that are found by a number.

cdef enum:
    ADD, SUBTRACT, MULTIPLY, DIVIDE, FLOOR_DIVIDE, REMAINDER
    BITWISE_AND, BITWISE_OR, BITWISE_XOR, LEFT_SHIFT, RIGHT_SHIFT, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL
    EQUAL, NOT_EQUAL, NEGATIVE, POSITIVE, ABSOLUTE, INVERT
    OPERATORS

cdef list _OPERATORS = """
    add subtract multiply divide floor_divide remainder bitwise_and bitwise_or bitwise_xor left_shift right_shift less
    less_equal greater greater_equal equal not_equal negative positive absolute invert
""".split()
cdef dict _functions = {}
cdef PyObject* _operators[OPERATORS]    # which _functions has
cdef tuple _operands = ()


def use_functions(dict functions, tuple operands):
    """Take the functions of operators by name, and the classes that their operands have."""
    global _functions, _operands
    _functions, _operands = functions, operands


cdef inline Elementwise function_of(int which):
    if _operators[which] == NULL:
        _operators[which] = <PyObject*>_functions[_OPERATORS[which]]
    return <Elementwise>_operators[which]


cdef inline bint is_operand(object given):
    return is_lazy(<PyObject*>given) or type(given) is float or type(given) is int or isinstance(given, _operands)


def quick_operators(type cls not None):
    """Let the operators of a class below Lazy have no detour."""
    cupola_take_operators(<PyTypeObject*>cls, <PyTypeObject*>Lazy)


cdef object operate(int which, object one, object other):
    cdef PyObject* given[2]
    given[0], given[1] = <PyObject*>one, <PyObject*>other
    if not is_operand(one) or not is_operand(other):
        return NotImplemented
    return apply(function_of(which), given, None)


cdef object operate_in_place(int which, object one, object other):
    cdef PyObject* given[2]
    given[0], given[1] = <PyObject*>one, <PyObject*>other
    if not is_operand(other):
        return NotImplemented
    return apply(function_of(which), given, one)


cdef object operate_alone(int which, object one):
    cdef PyObject* given[1]
    given[0] = <PyObject*>one
    return apply(function_of(which), given, None)
