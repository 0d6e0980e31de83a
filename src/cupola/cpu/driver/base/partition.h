/* Parts of a GPU: sets of its multiprocessors, and how they are split (partition.c). */
#ifndef CUPOLA_CPU_DRIVER_PARTITION_H
#define CUPOLA_CPU_DRIVER_PARTITION_H

#include <stdbool.h>
#include <stdint.h>

#include "device.h"
#include "status.h"

enum { MOST_MULTIPROCESSORS = 256 };

/* A set of multiprocessors, with what a CUdevSmResource says of it. */
struct part {
    uint64_t members[MOST_MULTIPROCESSORS / 64]; /* bit i: multiprocessor i */
    uint32_t count;
    uint32_t least;     /* multiprocessors that a group of it must have */
    uint32_t alignment; /* so many at a time are in one GPC */
    uint32_t flags;     /* CUdevSmResourceGroup_flags */
    uint32_t granule;   /* the alignment in a context of it; that of a group need not be told */
    uint32_t together;  /* clusters have at most so many blocks; 0: as many as a GPC has room for */
};

void part_whole(const struct model *model, struct part *part);
void part_list(const struct part *part, uint8_t *places); /* `count` of them, ascending */
bool part_overlaps(const struct part *a, const struct part *b);
void part_join(struct part *part, const struct part *other);

/* How many clusters of so many blocks, each multiprocessor holding `each` blocks, the part holds at once. */
int part_clusters(const struct model *model, const struct part *part, int each, int cluster_blocks);

/* cuDevSmResourceSplitByCount: at most `most` groups, all alike, and the rest. `groups` NULL: count them only. */
CUresult part_split_by_count(const struct model *model, const struct part *part, uint32_t flags, uint32_t least,
                             uint32_t most, struct part *groups, struct part *rest, uint32_t *made);

/* cuDevSmResourceSplit: a group for each of the parameters, in which counts of 0 are replaced. */
CUresult part_split(const struct model *model, const struct part *part, CU_DEV_SM_RESOURCE_GROUP_PARAMS *parameters,
                    uint32_t count, bool must_exist, struct part *groups, struct part *rest);

#endif
