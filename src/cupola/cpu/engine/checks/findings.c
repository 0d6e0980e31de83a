/* What the checks find in a launch. The same thing at the same instructions is counted, not told again. */
#include "checks.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "findings.h"

enum { MOST = 64 };

struct cpu_findings {
    pthread_mutex_t lock;
    size_t count;
    struct cpu_finding list[MOST];
};

struct cpu_findings *cpu_findings_new(void) {
    struct cpu_findings *findings = calloc(1, sizeof *findings);
    if (findings) pthread_mutex_init(&findings->lock, NULL);
    return findings;
}

void cpu_findings_free(struct cpu_findings *findings) {
    if (findings) pthread_mutex_destroy(&findings->lock);
    free(findings);
}

size_t cpu_findings_count(const struct cpu_findings *findings) { return findings ? findings->count : 0; }
const struct cpu_finding *cpu_findings_list(const struct cpu_findings *findings) { return findings->list; }

static bool is_same(const struct cpu_finding *a, const struct cpu_finding *b) {
    if (a->what != b->what || !a->deed != !b->deed) return false;
    if (a->site == b->site && a->other_site == b->other_site)
        return a->is_write == b->is_write && a->other_is_write == b->other_is_write;
    return a->site == b->other_site && a->other_site == b->site && a->is_write == b->other_is_write &&
           a->other_is_write == b->is_write;
}

void cpu_finding_add(const struct cpu_watch *watch, const struct cpu_finding *finding) {
    if (watch->launch->findings) cpu_findings_put(watch->launch->findings, finding);
}

void cpu_findings_put(struct cpu_findings *findings, const struct cpu_finding *finding) {
    pthread_mutex_lock(&findings->lock);
    size_t i = 0;
    while (i < findings->count && !is_same(&findings->list[i], finding)) i++;
    if (i < findings->count) {
        findings->list[i].count++;
    } else if (i < MOST) {
        findings->list[i] = *finding;
        findings->list[i].count = 1;
        findings->count++;
    }
    pthread_mutex_unlock(&findings->lock);
}
