/* Which multiprocessors a part of a GPU has, and how parts are split (CUDA Driver API, "Green Contexts").
 *
 * Multiprocessors come in pairs and lie in GPCs; all blocks of a cluster are in one GPC. The numbers go round the GPCs,
 * a pair at a time, as long as a GPC has pairs left. So multiprocessors of one GPC have numbers that are far apart. The
 * results of splits, and how many clusters fit into their groups, are those of an H200 with GPCs of 14 to 18
 * multiprocessors; on other H200s other multiprocessors are switched off. */
#include "base.h"

enum { PAIR = 2, GROUP = 8, MOST_TOGETHER = 32, GPCS = 8 };

static bool has_clusters(const struct model *model) { return model->major >= 9; }

/* The default granularity, in multiprocessors. */
static uint32_t granularity(const struct model *model) { return has_clusters(model) ? GROUP : PAIR; }

/* ---- sets ------------------------------------------------------------------------------------------------------ */

static bool has(const struct part *part, uint32_t i) { return part->members[i / 64] >> i % 64 & 1; }

static void add(struct part *part, uint32_t i) {
    part->members[i / 64] |= UINT64_C(1) << i % 64;
    part->count++;
}

static void take_out(struct part *part, uint32_t i) {
    part->members[i / 64] &= ~(UINT64_C(1) << i % 64);
    part->count--;
}

void part_list(const struct part *part, uint8_t *places) {
    for (uint32_t i = 0, found = 0; found < part->count; i++)
        if (has(part, i)) places[found++] = (uint8_t)i;
}

bool part_overlaps(const struct part *a, const struct part *b) {
    uint64_t common = 0;
    for (size_t i = 0; i < sizeof a->members / sizeof *a->members; i++) common |= a->members[i] & b->members[i];
    return common;
}

void part_join(struct part *part, const struct part *other) {
    for (size_t i = 0; i < sizeof part->members / sizeof *part->members; i++) part->members[i] |= other->members[i];
    part->count += other->count;
    if (other->granule < part->granule) part->granule = other->granule;
}

void part_whole(const struct model *model, struct part *part) {
    uint32_t granule = granularity(model);
    *part = (struct part){.least = granule, .alignment = granule, .granule = granule};
    for (int i = 0; i < model->multiprocessors; i++) add(part, (uint32_t)i);
}

/* ---- GPCs ------------------------------------------------------------------------------------------------------ */

/* The GPC of each multiprocessor. Sizes differ by up to two pairs. */
static void find_gpcs(const struct model *model, uint8_t gpc_of[MOST_MULTIPROCESSORS]) {
    int left[GPCS], pairs = model->multiprocessors / PAIR, even = pairs / GPCS, more = pairs % GPCS;
    for (int g = 0; g < GPCS; g++) left[g] = even + (g >= GPCS - more);
    if (even > 1 && more < GPCS) { /* the first has one less, and the last that could have one more has it */
        left[0]--;
        left[GPCS - 1 - more]++;
    }
    for (int i = 0, g = 0; i < pairs; i++, g = (g + 1) % GPCS) {
        while (!left[g]) g = (g + 1) % GPCS;
        left[g]--;
        gpc_of[PAIR * i] = gpc_of[PAIR * i + 1] = (uint8_t)g;
    }
}

static void count_in_gpcs(const struct model *model, const struct part *part, uint32_t counts[GPCS]) {
    uint8_t gpc_of[MOST_MULTIPROCESSORS];
    find_gpcs(model, gpc_of);
    memset(counts, 0, GPCS * sizeof *counts);
    for (uint32_t i = 0; i < (uint32_t)model->multiprocessors; i++)
        if (has(part, i)) counts[gpc_of[i]]++;
}

/* Each block of a cluster has a multiprocessor to itself. What a split with the usual granularity gave has clusters of up
 * to that many blocks. */
int part_clusters(const struct model *model, const struct part *part, int each, int cluster_blocks) {
    uint32_t counts[GPCS], clusters = 0;
    if (part->together && (uint32_t)cluster_blocks > part->together) return 0;
    count_in_gpcs(model, part, counts);
    for (int g = 0; g < GPCS; g++) clusters += counts[g] / (uint32_t)cluster_blocks;
    return (int)clusters * each;
}

/* Move a multiprocessor at a time from `from`, the lowest of the GPC, until there are `wanted`. */
static void move_from_gpc(struct part *from, struct part *to, const uint8_t *gpc_of, int gpc, uint32_t wanted) {
    for (uint32_t i = 0; wanted; i++) {
        if (!has(from, i) || gpc_of[i] != gpc) continue;
        take_out(from, i);
        add(to, i);
        wanted--;
    }
}

static void move_any(struct part *from, struct part *to, uint32_t wanted) {
    for (uint32_t i = 0; wanted; i++) {
        if (!has(from, i)) continue;
        take_out(from, i);
        add(to, i);
        wanted--;
    }
}

/* Move up to `wanted` multiprocessors, `together` at a time of the same GPC, going round the GPCs. Where `densely`, as many
 * as possible of one GPC before the next. Returns how many were moved. */
static uint32_t move_together(const struct model *model, struct part *from, struct part *to, uint32_t together,
                              uint32_t wanted, bool densely) {
    uint8_t gpc_of[MOST_MULTIPROCESSORS];
    uint32_t counts[GPCS], moved = 0;
    find_gpcs(model, gpc_of);
    count_in_gpcs(model, from, counts);
    /* First the GPCs from which the fewest have been taken. */
    for (bool found = true; found && moved + together <= wanted;) {
        uint32_t whole[GPCS];
        int best = -1;
        struct part all;
        part_whole(model, &all);
        count_in_gpcs(model, &all, whole);
        for (int g = 0; g < GPCS; g++) {
            if (counts[g] < together) continue;
            if (best < 0 || (densely ? counts[g] >= 2 * GROUP && counts[best] < 2 * GROUP
                                     : whole[g] - counts[g] < whole[best] - counts[best]))
                best = g;
        }
        found = best >= 0;
        if (!found) break;
        uint32_t step = together;
        if (densely && counts[best] >= 2 * GROUP && moved + 2 * GROUP <= wanted) step = 2 * GROUP;
        move_from_gpc(from, to, gpc_of, best, step);
        counts[best] -= step;
        moved += step;
    }
    return moved;
}

/* ---- splits ---------------------------------------------------------------------------------------------------- */

enum {
    IGNORE_COSCHEDULING = CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING,
    LARGEST_CLUSTERS = CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE,
};

/* Of the rest, nothing is known but that pairs stay together. */
static void begin_rest(const struct part *part, struct part *rest) {
    *rest = *part;
    rest->least = rest->alignment = rest->flags = rest->together = 0;
    rest->granule = PAIR;
}

CUresult part_split_by_count(const struct model *model, const struct part *part, uint32_t flags, uint32_t least,
                             uint32_t most, struct part *groups, struct part *rest, uint32_t *made) {
    flags &= IGNORE_COSCHEDULING | LARGEST_CLUSTERS; /* a GPU's driver minds no others */
    if (flags == (IGNORE_COSCHEDULING | LARGEST_CLUSTERS))
        return fail(CUDA_ERROR_INVALID_VALUE, "a split cannot both ignore which multiprocessors are scheduled together "
                                              "and make room for the largest clusters");
    if (flags & LARGEST_CLUSTERS && !has_clusters(model))
        return fail(CUDA_ERROR_INVALID_VALUE, "clusters need compute capability 9.0; this device has %d.%d",
                    model->major, model->minor);
    uint32_t unit = flags & IGNORE_COSCHEDULING ? PAIR : granularity(model);
    if (least > part->count)
        return fail(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
                    "groups of %u multiprocessors, but there are %u: a group can have any multiple of %u up to %u, or "
                    "all %u",
                    least, part->count, unit, part->count / unit * unit, part->count);
    uint32_t size = least ? (uint32_t)round_up(least, unit) : unit, count = part->count / size;
    if (size > part->count) { /* those beyond the last multiple can only be had together with all others */
        size = part->count;
        count = 1;
    }
    if (size == GROUP && unit == GROUP) { /* each in one GPC */
        uint32_t counts[GPCS];
        count_in_gpcs(model, part, counts);
        count = 0;
        for (int g = 0; g < GPCS; g++) count += counts[g] / GROUP;
        if (!count)
            return fail(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
                        "none of the %u multiprocessors are %d of the same GPC: split with "
                        "CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING",
                        part->count, GROUP);
    }
    if (count > most) count = most;
    begin_rest(part, rest);
    for (uint32_t i = 0; i < count; i++) {
        struct part *group = &groups[i];
        *group = (struct part){.granule = unit, .together = unit == GROUP && !flags && size < part->count ? GROUP : 0};
        uint32_t moved = unit == GROUP ? move_together(model, rest, group, GROUP, size, flags) : 0;
        move_any(rest, group, size - moved);
    }
    *made = count;
    return CUDA_SUCCESS;
}

/* What a group of a structured split must be like. */
static CUresult check_group(const struct model *model, const struct part *part,
                            const CU_DEV_SM_RESOURCE_GROUP_PARAMS *p, uint32_t together, uint32_t index) {
    uint32_t most = has_clusters(model) ? MOST_TOGETHER : PAIR, preferred = p->preferredCoscheduledSmCount;
    bool backfill = p->flags & CU_DEV_SM_RESOURCE_GROUP_BACKFILL;
    if (p->flags & ~(unsigned)CU_DEV_SM_RESOURCE_GROUP_BACKFILL)
        return fail(
            CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
            "group %u has the flags %#x (CUdevSmResourceGroup_flags), but the CPU device has no locality domains",
            index, p->flags);
    if (together % PAIR || together > most)
        return fail(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
                    "coscheduledSmCount of group %u is %u: it must be a multiple of %d, at most %u", index, together,
                    PAIR, most);
    if (preferred && (preferred % together || preferred > most))
        return fail(
            CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
            "preferredCoscheduledSmCount of group %u is %u: it must be a multiple of its coscheduledSmCount, %u, "
            "at most %u",
            index, preferred, together, most);
    if (p->smCount > part->count)
        return fail(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
                    "group %u is to have %u multiprocessors, but there are %u", index, p->smCount, part->count);
    if (p->smCount % PAIR || (p->smCount % together && !backfill))
        return fail(
            CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
            "group %u is to have %u multiprocessors: it must be a multiple of %u, so that they are scheduled "
            "together, or with a smaller coscheduledSmCount or CU_DEV_SM_RESOURCE_GROUP_BACKFILL any multiple of "
            "%d",
            index, p->smCount, together, PAIR);
    return CUDA_SUCCESS;
}

CUresult part_split(const struct model *model, const struct part *part, CU_DEV_SM_RESOURCE_GROUP_PARAMS *parameters,
                    uint32_t count, bool must_exist, struct part *groups, struct part *rest) {
    begin_rest(part, rest);
    for (uint32_t i = 0; i < count; i++) {
        CU_DEV_SM_RESOURCE_GROUP_PARAMS *p = &parameters[i];
        uint32_t together = p->coscheduledSmCount ? p->coscheduledSmCount : granularity(model), before = rest->count;
        RETURN_IF(check_group(model, part, p, together, i));
        groups[i] = (struct part){
            .least = together, .alignment = together, .flags = p->flags, .granule = together, .together = together};
        uint32_t wanted = p->smCount ? p->smCount : rest->count;
        uint32_t moved =
            move_together(model, rest, &groups[i], together, wanted, p->preferredCoscheduledSmCount > together);
        if (p->flags & CU_DEV_SM_RESOURCE_GROUP_BACKFILL) {
            uint32_t more = wanted - moved < rest->count ? wanted - moved : rest->count;
            move_any(rest, &groups[i], more);
            moved += more;
        }
        if (p->smCount && moved < p->smCount)
            return fail(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
                        "group %u is to have %u multiprocessors, %u together, but of the %u that the groups before it "
                        "left only %u can be had so",
                        i, p->smCount, together, before, moved);
        if (must_exist && moved < together)
            return fail(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
                        "nothing is left for group %u, which needs at least %u multiprocessors together", i, together);
        p->smCount = moved;
    }
    return CUDA_SUCCESS;
}
