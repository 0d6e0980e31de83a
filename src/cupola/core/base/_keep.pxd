# A reference to `value` (and to `memory`, from malloc; NULL: none) that release_kept gives back. On failure the memory
# is freed.
cdef void* keep(object value, void* memory) except NULL
cdef void release_kept(void* kept) noexcept nogil       # on any thread, with or without the GIL; takes no lock
cdef void forget_kept(void* kept) noexcept              # at once, where the driver has not seen it

# Drop the objects that were released meanwhile. Done by itself soon after, unless the interpreter is very busy.
cdef void drop_released() noexcept
