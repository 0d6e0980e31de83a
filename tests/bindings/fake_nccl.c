/* A libnccl.so.2 that fills in communicators after the call that makes them, as NVIDIA's does in groups and without
 * blocking. */
#include "cupola/nccl.h"

enum { MOST = 8 };
static ncclComm_t *places[MOST];
static int waiting;

static ncclResult_t later(ncclComm_t *place) {
    places[waiting++] = place;
    return ncclSuccess;
}

ncclResult_t ncclGroupStart(void) { return ncclSuccess; }
ncclResult_t ncclGroupEnd(void) {
    for (int i = 0; i < waiting; i++) *places[i] = (ncclComm_t)(long)(0x1000 + i);
    waiting = 0;
    return ncclSuccess;
}
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *made, ncclConfig_t *config) {
    (void)comm, (void)key, (void)config;
    return color < 0 ? ncclInvalidArgument : later(made);
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t *made, int count, ncclUniqueId id, int rank, ncclConfig_t *config) {
    (void)count, (void)id, (void)rank, (void)config;
    later(made);
    return ncclInProgress;
}
ncclResult_t ncclCommInitAll(ncclComm_t *made, int count, const int *devices) {
    (void)devices;
    for (int i = 0; i < count; i++) later(&made[i]);
    return ncclSuccess;
}
ncclResult_t ncclCommCount(const ncclComm_t comm, int *count) {
    *count = (int)(long)comm;
    return ncclSuccess;
}
