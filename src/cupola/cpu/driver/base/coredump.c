/* Settings of core dumps (CUDA Driver API, "Coredump Attributes Control API"): of the process, and of each context, which begins
 * with those of the process. They are kept and can be asked for; a fault is explained in words here (reports/), and no dump
 * is written. What is refused was recorded on an H200 (driver 580.159). */
#include <stdio.h>
#include <unistd.h>

#include "base.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct coredump of_process = {.flags = {[CU_COREDUMP_TRIGGER_HOST] = true}};

/* The name of a file, with %h and %p as the host and the process. */
static void expand(char target[COREDUMP_NAME], const char *name) {
    char host[256] = "";
    size_t used = 0;
    (void)gethostname(host, sizeof host - 1);
    for (; *name && used < COREDUMP_NAME; name++) {
        const bool is_host = !strncmp(name, "%h", 2), is_process = !strncmp(name, "%p", 2);
        const size_t room = COREDUMP_NAME - used;
        if (is_host) used += (size_t)snprintf(target + used, room, "%s", host);
        else if (is_process) used += (size_t)snprintf(target + used, room, "%d", (int)getpid());
        else target[used++] = *name;
        name += is_host || is_process;
    }
    if (used < COREDUMP_NAME) memset(target + used, 0, COREDUMP_NAME - used);
}

void coredump_begin(struct coredump *settings) {
    pthread_mutex_lock(&lock);
    *settings = of_process;
    pthread_mutex_unlock(&lock);
    expand(settings->file, of_process.file);
}

static CUresult check(CUcoredumpSettings setting, bool global) {
    const bool of_contexts = setting == CU_COREDUMP_ENABLE_ON_EXCEPTION || setting == CU_COREDUMP_TRIGGER_HOST ||
                             setting == CU_COREDUMP_LIGHTWEIGHT || setting == CU_COREDUMP_FILE ||
                             setting == CU_COREDUMP_GENERATION_FLAGS;
    if (of_contexts || (global && (setting == CU_COREDUMP_ENABLE_USER_TRIGGER || setting == CU_COREDUMP_PIPE)))
        return CUDA_SUCCESS;
    return fail(CUDA_ERROR_INVALID_VALUE, "%d is not a setting of core dumps of %s", (int)setting,
                global ? "the process" : "a context");
}

static bool is_name(CUcoredumpSettings setting) { return setting == CU_COREDUMP_FILE || setting == CU_COREDUMP_PIPE; }

static size_t size_of(CUcoredumpSettings setting) {
    if (is_name(setting)) return COREDUMP_NAME;
    return setting == CU_COREDUMP_GENERATION_FLAGS ? sizeof(uint32_t) : sizeof(bool);
}

static CUresult check_size(CUcoredumpSettings setting, size_t size) {
    if (is_name(setting) ? size <= COREDUMP_NAME : size == size_of(setting)) return CUDA_SUCCESS;
    return fail(CUDA_ERROR_INVALID_VALUE, "setting %d of core dumps has %s%zu bytes, not %zu", (int)setting,
                is_name(setting) ? "at most " : "", size_of(setting), size);
}

static CUresult get(const struct coredump *settings, CUcoredumpSettings setting, bool global, void *value,
                    size_t *size) {
    char name[COREDUMP_NAME + 1] = "";
    if (!size) return fail_null("size");
    RETURN_IF(check(setting, global));
    if (!value) {
        *size = size_of(setting);
        return CUDA_SUCCESS;
    }
    if (!is_name(setting)) RETURN_IF(check_size(setting, *size));
    pthread_mutex_lock(&lock);
    if (setting == CU_COREDUMP_FILE) memcpy(name, settings->file, sizeof name);
    if (setting == CU_COREDUMP_GENERATION_FLAGS) memcpy(value, &settings->generation, sizeof settings->generation);
    else if (!is_name(setting)) memcpy(value, &settings->flags[setting], sizeof(bool));
    pthread_mutex_unlock(&lock);
    if (!is_name(setting)) return CUDA_SUCCESS;
    if (global) {
        char expanded[COREDUMP_NAME];
        expand(expanded, name);
        memcpy(name, expanded, sizeof expanded);
    }
    memcpy(value, name, *size < COREDUMP_NAME ? *size : COREDUMP_NAME);
    return CUDA_SUCCESS;
}

static CUresult set(struct coredump *settings, CUcoredumpSettings setting, bool global, const void *value,
                    const size_t *size) {
    if (!value || !size) return fail_null("value or size");
    RETURN_IF(check(setting, global));
    if (setting == CU_COREDUMP_PIPE) return fail(CUDA_ERROR_NOT_SUPPORTED, "core dumps are not started by a pipe");
    RETURN_IF(check_size(setting, *size));
    pthread_mutex_lock(&lock);
    if (setting == CU_COREDUMP_FILE) {
        memset(settings->file, 0, sizeof settings->file);
        memcpy(settings->file, value, *size);
    } else if (setting == CU_COREDUMP_GENERATION_FLAGS) {
        memcpy(&settings->generation, value, sizeof settings->generation);
    } else {
        settings->flags[setting] = *(const unsigned char *)value != 0;
    }
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult cuCoredumpGetAttribute(CUcoredumpSettings attrib, void *value, size_t *size) {
    CUcontext context;
    RETURN_IF(context_find(NULL, &context));
    return get(&context->coredump, attrib, false, value, size);
}

CUresult cuCoredumpSetAttribute(CUcoredumpSettings attrib, void *value, size_t *size) {
    CUcontext context;
    RETURN_IF(context_find(NULL, &context));
    return set(&context->coredump, attrib, false, value, size);
}

CUresult cuCoredumpGetAttributeGlobal(CUcoredumpSettings attrib, void *value, size_t *size) {
    RETURN_IF(enter());
    return get(&of_process, attrib, true, value, size);
}

CUresult cuCoredumpSetAttributeGlobal(CUcoredumpSettings attrib, void *value, size_t *size) {
    RETURN_IF(enter());
    return set(&of_process, attrib, true, value, size);
}

const struct entry coredump_entries[] = {
    ENTRY(cuCoredumpGetAttribute),
    ENTRY(cuCoredumpSetAttribute),
    ENTRY(cuCoredumpGetAttributeGlobal),
    ENTRY(cuCoredumpSetAttributeGlobal),
    {NULL, NULL, NULL},
};
