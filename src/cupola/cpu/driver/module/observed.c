/* Programs of NVRTC for the CPU device.
 *
 * All are compiled with lines, so that faults and findings name them; that costs 3 % of the time. Nobody may have the
 * texts in files, so they are kept here, by a digest, and a comment at the end of the PTX has the digest: that is how
 * a module's text is found, also when the code comes from a cache of compiled programs.
 *
 * CUPOLA_COVERAGE or CUPOLA_PROFILE names the folder of what is found out about kernels line by line. The texts are put
 * there, too. For coverage and for a debugger (CUPOLA_DEBUGGER) programs are not optimized, because optimized code has no
 * branch where it can choose a value, and one line's instructions among those of others. */
#include "observed.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DIGITS = 32, TEXTS = 64 << 20 }; /* of a digest; bytes of texts that are kept: the oldest ones go */

static const char *variable(const char *name) {
    const char *text = getenv(name);
    return text && *text ? text : NULL;
}

static bool for_coverage(void) { return variable("CUPOLA_COVERAGE"); }
static const char *folder(void) { return variable("CUPOLA_COVERAGE") ?: variable("CUPOLA_PROFILE"); }
static bool for_debugger(void) { return variable("CUPOLA_DEBUGGER"); }
static bool is_unoptimized(void) { return for_coverage() || for_debugger(); }

/* ---- texts ------------------------------------------------------------------------------------------------------- */

struct source {
    nvrtcProgram program;
    char digest[DIGITS + 1];
    struct source *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct source *sources;

/* FNV-1a of 128 bits. */
static unsigned __int128 digest_of(unsigned __int128 digest, const char *text) {
    const unsigned __int128 prime = (unsigned __int128)1 << 88 | 0x13b;
    do digest = (digest ^ (unsigned char)*text) * prime;
    while (*text++);
    return digest;
}

static bool write_text(FILE *file, const char *name, const char *text) {
    return fprintf(file, "%zu %zu\n%s\n%s\n", strlen(name), strlen(text), name, text) > 0;
}

/* Written beside its place and renamed, so that a reader sees all of it or nothing. */
static bool keep(const char *digest, const char *name, const char *text, int count, const char *const *headers,
                 const char *const *names) {
    char path[4096], beside[4096 + 32];
    int length = snprintf(path, sizeof path, "%s/source-%s", folder(), digest);
    if (length < 0 || length >= (int)sizeof path) return false;
    if (!access(path, R_OK)) return true;
    snprintf(beside, sizeof beside, "%s.%ld", path, (long)getpid());
    FILE *file = fopen(beside, "w");
    if (!file) return false;
    bool done = write_text(file, name, text);
    for (int i = 0; i < count; i++) done &= write_text(file, names[i], headers[i]);
    done &= !fclose(file);
    if (done && !rename(beside, path)) return true;
    unlink(beside);
    return false;
}

static void remember(nvrtcProgram program, const char *digest) {
    struct source *source = malloc(sizeof *source);
    if (!source) return;
    source->program = program;
    memcpy(source->digest, digest, sizeof source->digest);
    pthread_mutex_lock(&lock);
    source->next = sources;
    sources = source;
    pthread_mutex_unlock(&lock);
}

/* "" when it is not known. */
static void find_digest(nvrtcProgram program, char digest[DIGITS + 1]) {
    *digest = 0;
    pthread_mutex_lock(&lock);
    for (struct source *source = sources; source; source = source->next)
        if (source->program == program) {
            memcpy(digest, source->digest, sizeof source->digest);
            break;
        }
    pthread_mutex_unlock(&lock);
}

static void forget(nvrtcProgram program) {
    pthread_mutex_lock(&lock);
    struct source **link = &sources, *source;
    while (*link && (*link)->program != program) link = &(*link)->next;
    if ((source = *link)) *link = source->next;
    pthread_mutex_unlock(&lock);
    free(source);
}

/* The texts of programs and of the headers that came with them, the latest program first. */
struct text {
    char digest[DIGITS + 1];
    const char *name, *text; /* behind this record */
    size_t size;
    struct text *next;
};
static struct text *texts;
static size_t text_bytes;

/* With the lock. The latest one stays, whatever its size. */
static void drop_oldest(void) {
    while (text_bytes > TEXTS && texts->next) {
        struct text **link = &texts->next;
        while ((*link)->next) link = &(*link)->next;
        text_bytes -= (*link)->size;
        free(*link);
        *link = NULL;
    }
}

static void keep_text(const char *digest, const char *name, const char *text) {
    const size_t name_size = strlen(name) + 1, text_size = strlen(text) + 1;
    struct text *kept = malloc(sizeof *kept + name_size + text_size);
    if (!kept) return;
    char *own_name = (char *)(kept + 1), *own_text = own_name + name_size;
    memcpy(own_name, name, name_size);
    memcpy(own_text, text, text_size);
    memcpy(kept->digest, digest, sizeof kept->digest);
    kept->name = own_name;
    kept->text = own_text;
    kept->size = sizeof *kept + name_size + text_size;
    pthread_mutex_lock(&lock);
    kept->next = texts;
    texts = kept;
    text_bytes += kept->size;
    drop_oldest();
    pthread_mutex_unlock(&lock);
}

static void write_digest(char digits[DIGITS + 1], const char *name, const char *text, int count,
                         const char *const *headers, const char *const *names) {
    unsigned __int128 digest = (unsigned __int128)0x6c62272e07bb0142 << 64 | 0x62b821756295c58d;
    digest = digest_of(digest_of(digest, folder() ? name : ""), text); /* a name may be that of a temporary file */
    for (int i = 0; i < count; i++) digest = digest_of(digest_of(digest, names[i]), headers[i]);
    snprintf(digits, DIGITS + 1, "%016llx%016llx", (unsigned long long)(digest >> 64), (unsigned long long)digest);
}

static bool is_kept(const char *digest, const char *name) {
    pthread_mutex_lock(&lock);
    const struct text *text = texts;
    while (text && (strcmp(text->digest, digest) || strcmp(text->name, name))) text = text->next;
    pthread_mutex_unlock(&lock);
    return text;
}

static void keep_texts(const char *digest, const char *name, const char *text, int count, const char *const *headers,
                       const char *const *names) {
    if (is_kept(digest, name)) return;
    for (int i = count - 1; i >= 0; i--) keep_text(digest, names[i], headers[i]);
    keep_text(digest, name, text);
}

static const char *or_default(const char *name) { return name && *name ? name : "default_program"; }

void observed_keep(const char *name, const char *text) {
    char digest[DIGITS + 1];
    write_digest(digest, or_default(name), text, 0, NULL, NULL);
    keep_texts(digest, or_default(name), text, 0, NULL, NULL);
}

char *observed_text(const char *name, const char *digest) {
    const struct text *found = NULL;
    pthread_mutex_lock(&lock);
    for (const struct text *text = texts; text; text = text->next) {
        if ((*name && strcmp(text->name, name)) || (*digest && strcmp(text->digest, digest))) continue;
        if (!*name) {
            found = text;
            break;
        }
        if (found && strcmp(found->text, text->text)) { /* several of one name, and no digest to tell which */
            found = NULL;
            break;
        }
        found = text;
    }
    char *copy = found ? strdup(found->text) : NULL;
    pthread_mutex_unlock(&lock);
    return copy;
}

/* ---- functions of NVRTC ------------------------------------------------------------------------------------------ */

nvrtcResult observed_create(const struct nvrtc *nvrtc, nvrtcProgram *program, const char *text, const char *name,
                            int count, const char *const *headers, const char *const *names) {
    nvrtcResult result = nvrtc->create(program, text, name, count, headers, names);
    const char *named = or_default(name);
    if (result != NVRTC_SUCCESS) return result;
    char digits[DIGITS + 1];
    write_digest(digits, named, text, count, headers, names);
    keep_texts(digits, named, text, count, headers, names);
    if (!folder() || keep(digits, named, text, count, headers, names)) remember(*program, digits);
    return result;
}

nvrtcResult observed_destroy(const struct nvrtc *nvrtc, nvrtcProgram *program) {
    if (program && *program) forget(*program);
    return nvrtc->destroy(program);
}

static bool begins(const char *text, const char *with) { return !strncmp(text, with, strlen(with)); }

static bool has_lines(const char *option) {
    return !strcmp(option, "-G") || !strcmp(option, "--device-debug") || !strcmp(option, "-lineinfo") ||
           !strcmp(option, "--generate-line-info");
}

static bool is_about_optimizing(const char *option) {
    return begins(option, "-dopt") || begins(option, "--dopt") || begins(option, "-Ofast-compile") ||
           begins(option, "--Ofast-compile");
}

static bool is_of_links(const char *option) {
    return !strcmp(option, "-dlto") || begins(option, "--dlink-time-opt") || begins(option, "--gen-opt-lto");
}

nvrtcResult observed_compile(const struct nvrtc *nvrtc, nvrtcProgram program, int count, const char *const *options) {
    const char **changed = count >= 0 ? malloc(((size_t)count + 1) * sizeof *changed) : NULL;
    if (!changed) return nvrtc->compile(program, count, options);
    bool unoptimized = is_unoptimized(), lines = false;
    for (int i = 0; i < count; i++) {
        unoptimized &= !is_of_links(options[i]);
        lines |= has_lines(options[i]);
    }
    int used = 0;
    for (int i = 0; i < count; i++) {
        if (unoptimized && (has_lines(options[i]) || is_about_optimizing(options[i]))) {
            i += i + 1 < count && *options[i + 1] != '-'; /* "-dopt on" may be two */
            continue;
        }
        changed[used++] = options[i];
    }
    if (unoptimized || !lines) changed[used++] = unoptimized ? "--device-debug" : "--generate-line-info";
    nvrtcResult result = nvrtc->compile(program, used, changed);
    free(changed);
    return result;
}

/* The PTX with the comment behind it. Both sizes have the closing zero. */
#define COMMENT "// cupola: the digest is "
#define COMMENT_OBSERVED "// cupola: the source is " /* cupola.cpu.compiler.facts.counts_lines */
enum { COMMENT_SIZE = sizeof COMMENT - 1 + DIGITS + 1 };
_Static_assert(sizeof COMMENT == sizeof COMMENT_OBSERVED, "either has room");

nvrtcResult observed_ptx_size(const struct nvrtc *nvrtc, nvrtcProgram program, size_t *size) {
    char digest[DIGITS + 1];
    nvrtcResult result = nvrtc->ptx_size(program, size);
    if (result != NVRTC_SUCCESS || *size < 2) return result;
    find_digest(program, digest);
    if (*digest) *size += COMMENT_SIZE;
    return result;
}

nvrtcResult observed_ptx(const struct nvrtc *nvrtc, nvrtcProgram program, char *target) {
    char digest[DIGITS + 1] = "";
    size_t size = 0;
    nvrtcResult result = nvrtc->ptx(program, target);
    if (result != NVRTC_SUCCESS || nvrtc->ptx_size(program, &size) != NVRTC_SUCCESS || size < 2) return result;
    find_digest(program, digest);
    if (*digest) memcpy(target + size - 1, folder() ? COMMENT_OBSERVED : COMMENT, sizeof COMMENT - 1);
    if (*digest) memcpy(target + size - 1 + sizeof COMMENT - 1, digest, DIGITS);
    if (*digest) memcpy(target + size - 1 + COMMENT_SIZE - 1, "\n", 2);
    return result;
}
