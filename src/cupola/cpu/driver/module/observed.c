/* Programs of NVRTC whose kernels will be observed line by line: CUPOLA_COVERAGE or CUPOLA_PROFILE names the folder of
 * what is found out.
 *
 * All are compiled with lines, so that faults and findings name them; that costs 3 % of the time. For coverage they are not optimized, because optimized code has no branch where it can
 * choose a value, and one line's instructions among those of others. The text of each program is put into the folder,
 * since nobody may have it in a file, and a comment at the end of the PTX says which one it was.
 *
 * For checks (CUPOLA_CHECK) the texts are kept here, by the names of the programs.
 * So they are for a debugger (CUPOLA_DEBUGGER), and not optimized. */
#include "observed.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DIGITS = 32 };

static const char *variable(const char *name) {
    const char *text = getenv(name);
    return text && *text ? text : NULL;
}

static bool for_coverage(void) { return variable("CUPOLA_COVERAGE"); }
static const char *folder(void) { return variable("CUPOLA_COVERAGE") ?: variable("CUPOLA_PROFILE"); }
static bool for_debugger(void) { return variable("CUPOLA_DEBUGGER"); }
static bool for_checks(void) { return variable("CUPOLA_CHECK"); }
static bool keeps_texts(void) { return for_checks() || for_debugger(); }
static bool is_unoptimized(void) { return for_coverage() || for_debugger(); }
bool is_observed(void) { return folder() || keeps_texts(); }

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

/* Texts for findings: of several programs of one name, that of the last. */
struct text {
    char *name, *text;
    struct text *next;
};
static struct text *texts;

static void keep_text(const char *name, const char *text) {
    struct text *kept = malloc(sizeof *kept);
    char *own_name = strdup(name), *own_text = strdup(text);
    if (!kept || !own_name || !own_text) {
        free(kept);
        free(own_name);
        free(own_text);
        return;
    }
    *kept = (struct text){own_name, own_text, NULL};
    pthread_mutex_lock(&lock);
    kept->next = texts;
    texts = kept; /* stays: whoever has found a text goes on to read it */
    pthread_mutex_unlock(&lock);
}

const char *observed_text(const char *name) {
    pthread_mutex_lock(&lock);
    const struct text *kept = texts;
    while (kept && strcmp(kept->name, name)) kept = kept->next;
    pthread_mutex_unlock(&lock);
    return kept ? kept->text : NULL;
}

/* ---- functions of NVRTC ------------------------------------------------------------------------------------------ */

nvrtcResult observed_create(const struct nvrtc *nvrtc, nvrtcProgram *program, const char *text, const char *name,
                            int count, const char *const *headers, const char *const *names) {
    nvrtcResult result = nvrtc->create(program, text, name, count, headers, names);
    const char *named = name && *name ? name : "default_program";
    if (result == NVRTC_SUCCESS && keeps_texts()) keep_text(named, text);
    if (result != NVRTC_SUCCESS || !folder()) return result;
    unsigned __int128 digest = (unsigned __int128)0x6c62272e07bb0142 << 64 | 0x62b821756295c58d;
    digest = digest_of(digest_of(digest, named), text);
    for (int i = 0; i < count; i++) digest = digest_of(digest_of(digest, names[i]), headers[i]);
    char digits[DIGITS + 1];
    snprintf(digits, sizeof digits, "%016llx%016llx", (unsigned long long)(digest >> 64), (unsigned long long)digest);
    if (keep(digits, named, text, count, headers, names)) remember(*program, digits);
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
#define COMMENT "// cupola: the source is "
enum { COMMENT_SIZE = sizeof COMMENT - 1 + DIGITS + 1 };

nvrtcResult observed_ptx_size(const struct nvrtc *nvrtc, nvrtcProgram program, size_t *size) {
    char digest[DIGITS + 1];
    nvrtcResult result = nvrtc->ptx_size(program, size);
    if (result != NVRTC_SUCCESS || *size < 2 || !folder()) return result;
    find_digest(program, digest);
    if (*digest) *size += COMMENT_SIZE;
    return result;
}

nvrtcResult observed_ptx(const struct nvrtc *nvrtc, nvrtcProgram program, char *target) {
    char digest[DIGITS + 1] = "";
    size_t size = 0;
    nvrtcResult result = nvrtc->ptx(program, target);
    if (result != NVRTC_SUCCESS || !folder() || nvrtc->ptx_size(program, &size) != NVRTC_SUCCESS || size < 2)
        return result;
    find_digest(program, digest);
    if (*digest) memcpy(target + size - 1, COMMENT, sizeof COMMENT - 1);
    if (*digest) memcpy(target + size - 1 + sizeof COMMENT - 1, digest, DIGITS);
    if (*digest) memcpy(target + size - 1 + COMMENT_SIZE - 1, "\n", 2);
    return result;
}
