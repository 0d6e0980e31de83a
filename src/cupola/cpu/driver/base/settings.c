/* What the environment says about the CPU device: read here and nowhere else in C, once, by cuInit. It refuses a value that
 * makes no sense, but not of CUDA's own variables, of which CUDA refuses none; visible.c reads CUDA_VISIBLE_DEVICES. The
 * compiler reads more: CUPOLA_CPU_FEATURES, CUPOLA_CPU_CACHE and CUPOLA_CPU_NUMERICS. docs/cpu-device.md lists all. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base.h"
#include "engine/engine.h"
#include "engine/memory/memory.h"

enum { OLDEST_VERSION = 12000 }; /* the newest is that of the headers which the driver is made after */
enum { MOST_THREADS = 256, MOST_SECONDS = 1000000, CONNECTIONS = 8, MOST_CONNECTIONS = 32 };

struct settings settings = {.version = CUDA_VERSION};

/* The text of a variable; NULL when it is not set, or empty. */
static const char *text_of(const char *name) {
    const char *text = getenv(name);
    return text && *text ? text : NULL;
}

static CUresult refuse(const char *name, const char *text, const char *allowed) {
    return fail(CUDA_ERROR_INVALID_VALUE, "%s is '%s': it must be %s", name, text, allowed);
}

/* A decimal number; `rest` gets what is behind it. */
static bool read_number(const char *text, double *number, const char **rest) {
    char *end;
    if (!strchr("0123456789.", *text)) return false; /* signs, white space, "nan" */
    if (text[0] == '0' && (text[1] | 32) == 'x') return false;
    *number = strtod(text, &end);
    *rest = end;
    return end != text && isfinite(*number);
}

/* A whole number in a range. Unset: *number stays. */
static CUresult read_count(const char *name, long least, long most, long *number) {
    const char *text = text_of(name), *rest;
    double value;
    if (!text) return CUDA_SUCCESS;
    if (read_number(text, &value, &rest) && !*rest && value >= (double)least && value <= (double)most &&
        value == floor(value)) {
        *number = (long)value;
        return CUDA_SUCCESS;
    }
    char allowed[64];
    snprintf(allowed, sizeof allowed, "a number from %ld to %ld", least, most);
    return refuse(name, text, allowed);
}

/* Bytes: a number, perhaps with a unit, K, M, G or T, with "B" or "iB" behind it or not. All are powers of 1024. */
static CUresult read_bytes(const char *name, uint64_t *bytes) {
    static const char units[] = "KMGT";
    const char *text = text_of(name), *rest;
    double value;
    if (!text) return CUDA_SUCCESS;
    if (read_number(text, &value, &rest)) {
        while (*rest == ' ') rest++;
        const char *unit = *rest ? strchr(units, *rest & ~32) : NULL;
        if (unit) {
            value = ldexp(value, 10 * (int)(unit - units + 1));
            rest++;
            if ((rest[0] | 32) == 'i' && (rest[1] | 32) == 'b') rest++;
        }
        if ((*rest | 32) == 'b') rest++;
        if (!*rest && value >= 1 && value < 0x1p63) {
            *bytes = (uint64_t)value;
            return CUDA_SUCCESS;
        }
    }
    return refuse(name, text, "a number of bytes, such as 4294967296, 4096M or 4G");
}

static CUresult read_seconds(const char *name, double *seconds) {
    const char *text = text_of(name), *rest;
    double value;
    if (!text) return CUDA_SUCCESS;
    if (read_number(text, &value, &rest) && !*rest && value <= MOST_SECONDS) {
        *seconds = value;
        return CUDA_SUCCESS;
    }
    return refuse(name, text, "a number of seconds, such as 2.5, or 0 for no limit");
}

/* One of two words. */
static CUresult check_switch(const char *name, const char *one, const char *other) {
    const char *text = text_of(name);
    if (!text || !strcmp(text, one) || !strcmp(text, other)) return CUDA_SUCCESS;
    char allowed[64];
    snprintf(allowed, sizeof allowed, "%s or %s", one, other);
    return refuse(name, text, allowed);
}

CUresult settings_read_version(int *version) {
    const char *text = text_of("CUPOLA_CPU_CUDA_VERSION");
    *version = CUDA_VERSION;
    if (!text) return CUDA_SUCCESS;
    char *end;
    long major = strtol(text, &end, 10), minor = *end == '.' ? strtol(end + 1, &end, 10) : -1;
    long asked = major * 1000 + minor * 10;
    if (*end || major < 0 || major > 99 || minor < 0 || minor > 9 || asked < OLDEST_VERSION || asked > CUDA_VERSION) {
        char allowed[64];
        snprintf(allowed, sizeof allowed, "a version of CUDA from %d.%d to %d.%d", OLDEST_VERSION / 1000,
                 OLDEST_VERSION % 1000 / 10, CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
        return refuse("CUPOLA_CPU_CUDA_VERSION", text, allowed);
    }
    *version = (int)asked;
    return CUDA_SUCCESS;
}

CUresult settings_read_devices(const struct model **model, int *count) {
    const char *key = text_of("CUPOLA_CPU_MODEL");
    long number = 1;
    *model = key ? model_find(key) : &models[0];
    if (!*model) {
        char known[256];
        size_t used = 0;
        for (size_t i = 0; i < model_count && used < sizeof known; i++)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "one of ", models[i].key);
        return refuse("CUPOLA_CPU_MODEL", key, known);
    }
    RETURN_IF(read_count("CUPOLA_CPU_DEVICES", 1, MAX_DEVICES, &number));
    *count = (int)number;
    return CUDA_SUCCESS;
}

static void read_variables_of_cuda(void) {
    const char *blocking = text_of("CUDA_LAUNCH_BLOCKING"), *loading = text_of("CUDA_MODULE_LOADING"), *rest;
    const char *connections = text_of("CUDA_DEVICE_MAX_CONNECTIONS");
    double value;
    settings.launch_blocking = blocking && read_number(blocking, &value, &rest) && value != 0;
    settings.eager_loading = loading && !strcasecmp(loading, "EAGER");
    long number = connections ? strtol(connections, NULL, 10) : 0;
    settings.connections = number < 1 ? CONNECTIONS : number > MOST_CONNECTIONS ? MOST_CONNECTIONS : (unsigned)number;
}

CUresult settings_read(void) {
    long threads = 0;
    uint64_t memory = 0;
    double seconds = 0;
    RETURN_IF(settings_read_version(&settings.version));
    RETURN_IF(read_count("CUPOLA_CPU_THREADS", 1, MOST_THREADS, &threads));
    RETURN_IF(read_bytes("CUPOLA_CPU_MEMORY", &memory));
    RETURN_IF(read_seconds("CUPOLA_CPU_TIMEOUT", &seconds));
    RETURN_IF(check_switch("CUPOLA_CPU_CACHE", "0", "1"));
    RETURN_IF(check_switch("CUPOLA_CPU_NUMERICS", "exact", "fast"));
    read_variables_of_cuda();
    cpu_pool_set_threads((int)threads);
    cpu_memory_set_host_capacity(memory);
    cpu_stop_after((uint64_t)(seconds * 1e9));
    return CUDA_SUCCESS;
}
