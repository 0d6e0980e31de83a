/* NVIDIA's library of the same name, which a library of the CPU device passes calls on to (libnvrtc.c, libnvjitlink.c). */
#ifndef CUPOLA_CPU_PROVIDER_REAL_H
#define CUPOLA_CPU_PROVIDER_REAL_H

/* Which it is, for the one file that defines this. */
struct real {
    const char *name;            /* such as "libnvrtc.so.13" */
    const char *(*copies)(void); /* the paths that `cupola run` knows, with colons between them; or NULL */
    const char *wheel;           /* what to install */
};
extern const struct real real;

/* A function of the library, which the first call looks for; NULL if there is none, or no library. */
void *in_real(const char *symbol);

/* The library, from dlopen(), or NULL. */
void *real_library(void);

/* In each of these libraries: says that cubins from here have their PTX already (driver/module/trailer.c). */
extern const char cupola_keeps_ptx;

#endif
