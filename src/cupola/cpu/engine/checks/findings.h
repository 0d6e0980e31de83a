/* What the checks have found in a launch, for the driver to tell (findings.c). */
#ifndef CUPOLA_CPU_FINDINGS_H
#define CUPOLA_CPU_FINDINGS_H

#include <stddef.h>
#include <stdint.h>

#include "engine/engine.h"
#include "moments.h"

enum cpu_finding_what {
    CPU_FOUND_RACE,
    CPU_FOUND_EARLY,   /* a copy that was not waited for */
    CPU_FOUND_UNSET,   /* read, but written by nobody */
    CPU_FOUND_ABSENT,  /* a warp operation names threads that are not there */
    CPU_FOUND_UNNAMED, /* a thread does not name itself */
    CPU_FOUND_PART,    /* a barrier for all threads, where only some of a warp are */
    CPU_FOUND_FREED,   /* freed, while others may still use it */
    CPU_FOUND_ENDED,   /* a block, while a copy may still use its shared memory */
};

/* Of a site: it is one of the variant's (Variant.sites), not the number of an instruction. */
enum { CPU_SITE_OF_VARIANT = 1 << 15 };

struct cpu_finding {
    int what;
    uint32_t site, other_site; /* numbers of instructions; UINT16_MAX: not known */
    uint8_t kind, other_kind, is_write, other_is_write, space;
    uint32_t block[3], thread[3], other_block[3], other_thread[3];
    uint64_t address, size;
    uint32_t deed; /* whose the other access is, if it is not this launch's: a number of its blocks; else 0 */
    uint32_t lanes;
    uint64_t count;
};

struct cpu_findings;
struct cpu_findings *cpu_findings_new(void); /* NULL: no memory */
void cpu_findings_free(struct cpu_findings *findings);
size_t cpu_findings_count(const struct cpu_findings *findings);
const struct cpu_finding *cpu_findings_list(const struct cpu_findings *findings);

/* Keep a finding, or count one that is the same. Any thread. */
void cpu_findings_put(struct cpu_findings *findings, const struct cpu_finding *finding);

/* Hand what was found in a launch that is over, or in another operation, to cupola.cpu.reports (tell.c). Takes the GIL. */
void cpu_findings_tell(const cpu_launch *launch);
void cpu_findings_tell_of(const struct cpu_findings *findings, const cpu_deed *deed);

#endif
