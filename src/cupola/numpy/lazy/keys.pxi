# The key of an expression: operations, types, and how its arrays lie, in a few bytes.

cdef struct Walk:
    int words
    int arrays
    int values
    int seen
    uint16_t key[WORDS]
    PyObject* array[READ + 1]
    PyObject* value[VALUES]
    uint8_t kind[VALUES]
    PyObject* known[SEEN]


cdef inline int push(Walk* walk, int word) except -1:
    if walk.words == WORDS:
        raise NotImplementedError("an expression that is too large for one kernel")
    walk.key[walk.words] = <uint16_t>word
    walk.words += 1
    return 0


cdef inline int note(Walk* walk, PyObject* operand) except -1:
    if walk.seen == SEEN:
        raise NotImplementedError("an expression that is too large for one kernel")
    walk.known[walk.seen] = operand
    walk.seen += 1
    return 0


cdef int push_array(Walk* walk, Array array) except -1:
    if walk.arrays == READ:
        raise NotImplementedError(f"an expression of more than {READ} arrays")
    walk.array[walk.arrays] = <PyObject*>array
    walk.arrays += 1
    return push(walk, 0x2000 | type_number(array.type))


cdef int push_value(Walk* walk, object operand, int kind) except -1:
    if walk.values == VALUES:
        raise NotImplementedError(f"an expression of more than {VALUES} scalars")
    walk.value[walk.values], walk.kind[walk.values] = <PyObject*>operand, <uint8_t>kind
    walk.values += 1
    return push(walk, 0x3000 | kind)


cdef int visit(Walk* walk, object operand, int kind=-1) except -1:
    """Add an operand: to the key, and to what is read, in the order of `Text`; a number of Python has this kind."""
    cdef int k, number
    cdef object found
    cdef Operation operation
    if type(operand) is float:
        return push_value(walk, operand, kind)      # which may stand elsewhere, in another type
    for k in range(walk.seen):
        if walk.known[k] == <PyObject*>operand:
            return push(walk, 0x1000 | k)
    if type(operand) is Node:
        operation = (<Node>operand).operation
        push(walk, 0x8000 | operation.code)
        push(walk, operation.kind | (<Node>operand).count << 5)
        if operation.code == GATHER:
            for k in range(1, (<Node>operand).count):
                visit(walk, <object>operand_at(<Node>operand, k))
            push_array(walk, <Array?>operand_of(<Node>operand, 0))
        else:
            for k in range((<Node>operand).count):
                number = operation.numbers[k] if k < 3 else type_number(operation.loop[k])
                visit(walk, <object>operand_at(<Node>operand, k), number)
                push(walk, number)
    elif isinstance(operand, Array):
        push_array(walk, <Array>operand)
    else:
        found = _class_numbers.get(type(operand))
        push_value(walk, operand, <int>found if found is not None else type_number(operand.dtype))
    return note(walk, <PyObject*>operand)
