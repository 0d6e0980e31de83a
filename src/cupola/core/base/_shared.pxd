"""What several threads share, also where Python has no GIL (PEP 703).

A field of an object that refers to another object, and that changes after the object was made, is read and replaced
*alone*: else one thread could let go of what another is about to take a reference to. With the GIL that costs nothing.

    begin_alone(&alone, <PyObject*>self)
    native = self.native
    end_alone(&alone)

Nothing between the two may fail. Where speed matters less, `with cython.critical_section(self)` does the same. Both
are given up while the thread waits for anything, as the GIL is (PEP 703, "Python Critical Sections"), so they cannot
deadlock, and what is alone must be short and complete in itself. What was replaced is let go of behind the end: its
destructor may wait for the driver.

`Uses` counts the calls that use a native handle, most of which let other threads run: if one of those closes it
meanwhile, the last of the calls destroys it.

`Turn` is for handles that the driver does not synchronize: one thread at a time has it, as often as it likes.
"""

from cpython.object cimport PyObject


cdef extern from *:
    """
    #ifndef CUPOLA_SHARED
    #define CUPOLA_SHARED
    #include <pthread.h>
    #include <stdint.h>
    #ifdef Py_GIL_DISABLED
    typedef PyCriticalSection cupola_alone;
    #define cupola_begin_alone(section, object) PyCriticalSection_Begin(section, object)
    #define cupola_end_alone(section) PyCriticalSection_End(section)
    #define cupola_add(place, number) ((void)__atomic_add_fetch(place, number, __ATOMIC_ACQ_REL))
    #define cupola_see(place) __atomic_load_n(&(place), __ATOMIC_ACQUIRE)
    #define cupola_publish(place, value) __atomic_store_n(&(place), value, __ATOMIC_RELEASE)
    #define cupola_subtract_one(place) __atomic_sub_fetch(place, 1, __ATOMIC_ACQ_REL)
    #define cupola_set_bit(place, bit) __atomic_fetch_or(place, bit, __ATOMIC_ACQ_REL)
    #define cupola_replace(place, known, value) \
        __atomic_compare_exchange_n(place, known, value, 1, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)
    #else
    typedef char cupola_alone;
    #define cupola_begin_alone(section, object) ((void)(section), (void)(object))
    #define cupola_end_alone(section) ((void)(section))
    #define cupola_add(place, number) ((void)(*(place) += (number)))
    #define cupola_see(place) (place)
    #define cupola_publish(place, value) ((void)((place) = (value)))
    #define cupola_subtract_one(place) (--*(place))
    static inline uint32_t cupola_set_bit(uint32_t *place, uint32_t bit)
    {
        uint32_t before = *place;
        *place |= bit;
        return before;
    }
    #define cupola_replace(place, known, value) ((void)(known), *(place) = (value), 1)
    #endif

    typedef struct { uint32_t calls; } cupola_uses;
    enum { CUPOLA_CLOSED = 1 << 30 };

    static inline int cupola_begin_use(cupola_uses *uses)
    {
        uint32_t calls = cupola_see(uses->calls);
        do {
            if (calls & CUPOLA_CLOSED) return 0;
        } while (!cupola_replace(&uses->calls, &calls, calls + 1));
        return 1;
    }
    static inline int cupola_end_use(cupola_uses *uses)
    {
        return cupola_subtract_one(&uses->calls) == CUPOLA_CLOSED;
    }
    static inline void cupola_reopen(cupola_uses *uses)
    {
        cupola_add(&uses->calls, (uint32_t)-CUPOLA_CLOSED);
    }
    static inline int cupola_close(cupola_uses *uses)
    {
        return cupola_set_bit(&uses->calls, CUPOLA_CLOSED) == 0;
    }

    static inline void cupola_make_turn(pthread_mutex_t *turn)
    {
        pthread_mutexattr_t kind;
        pthread_mutexattr_init(&kind);
        pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
        pthread_mutex_init(turn, &kind);
        pthread_mutexattr_destroy(&kind);
    }
    #endif
    """
    ctypedef struct Alone "cupola_alone":
        pass
    void begin_alone "cupola_begin_alone"(Alone* section, PyObject* object) noexcept
    void end_alone "cupola_end_alone"(Alone* section) noexcept

    # Add to a number that several threads count in.
    void add_shared "cupola_add"(int* place, int number) noexcept
    # What another thread has published, whole; and do that.
    int see "cupola_see"(int place) noexcept
    void publish "cupola_publish"(int place, int value) noexcept

    ctypedef struct Uses "cupola_uses":
        pass
    bint begin_use "cupola_begin_use"(Uses* uses) noexcept          # False: it is closed
    bint end_use "cupola_end_use"(Uses* uses) noexcept              # True: closed meanwhile, and this was the last call
    bint close_uses "cupola_close"(Uses* uses) noexcept             # True: nobody uses it, or ever will. Call it once
    void reopen_uses "cupola_reopen"(Uses* uses) noexcept           # ... and this if it cannot be closed

    ctypedef struct Turn "pthread_mutex_t":
        pass
    void make_turn "cupola_make_turn"(Turn* turn) noexcept
    bint turn_is_taken "pthread_mutex_trylock"(Turn* turn) noexcept     # by another thread; False: this one has it now
    int wait_for_turn "pthread_mutex_lock"(Turn* turn) noexcept nogil
    int give_turn "pthread_mutex_unlock"(Turn* turn) noexcept
