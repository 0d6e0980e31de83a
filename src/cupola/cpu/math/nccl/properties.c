/* What a program asks before it uses kernels that communicate by themselves, and the sockets' encryption. There are no such
 * kernels here: a rank reaches no other one's memory, so it is the only one of its team of direct access. Their types are
 * those of nccl_device.h, which the bindings do not have. */
#include "math/base/math.h"
#include "nccl.h"
#include "engine/memory/usage.h"

struct team {
    int count, rank, stride;
};

struct properties { /* of NCCL 2.32; older ones are shorter */
    size_t size;
    unsigned magic, version;
    int rank, count, device, nvml_device;
    bool device_calls, multimem;
    int gin;
    int lsa_teams;
    bool one_sided;
    int railed_gin;
    uint64_t hash;
    int least_stride, gin_connection;
    bool gin_types[64];
    size_t device_size;
    bool cft, cft_multicast, cft_counted;
};

static ncclResult_t comm_properties(ncclComm_t comm, struct properties *asked) {
    NCCL_RETURN_IF(comm_check(comm, "CommQueryProperties", true));
    if (!asked) return nccl_fail(ncclInvalidArgument, "CommQueryProperties : props argument is NULL");
    if (asked->size < offsetof(struct properties, rank) || asked->magic != NCCL_API_MAGIC)
        return nccl_fail(ncclInvalidArgument,
                         "ncclCommProperties_t argument not initialized via NCCL_COMM_PROPERTIES_INITIALIZER");
    const int device = comm->context->device->ordinal;
    struct properties found = {.rank = comm->rank,
                               .count = comm->count,
                               .device = device,
                               .nvml_device = cpu_usage_place(device),
                               .lsa_teams = comm->count,
                               .hash = comm->hash};
    const size_t begin = offsetof(struct properties, rank);
    const size_t end = asked->size < sizeof found ? asked->size : sizeof found;
    memcpy((char *)asked + begin, (char *)&found + begin, end - begin);
    return ncclSuccess;
}

static struct team team_of_all(ncclComm_t comm) {
    if (comm_check(comm, "TeamWorld", false)) return (struct team){0};
    return (struct team){comm->count, comm->rank, 1};
}

/* Ranks of different teams of direct access that have the same place in them: all. */
static struct team team_of_rail(ncclComm_t comm) {
    if (comm_check(comm, "TeamRail", false)) return (struct team){0};
    return (struct team){comm->count, comm->rank, 1};
}

static struct team team_of_access(ncclComm_t comm) {
    if (comm_check(comm, "TeamLsa", false)) return (struct team){0};
    return (struct team){1, 0, 1};
}

static int rank_to_world(ncclComm_t comm, struct team team, int rank) {
    if (comm_check(comm, "TeamRankToWorld", false)) return -1;
    return comm->rank + (rank - team.rank) * team.stride;
}

static int rank_to_access(ncclComm_t comm, struct team team, int rank) {
    if (comm_check(comm, "TeamRankToLsa", false)) return -1;
    return (rank - team.rank) * team.stride;
}

static struct team no_team(ncclComm_t comm) {
    (void)comm;
    nccl_fail(ncclInvalidUsage, "TeamCft: the CPU device has no fabric that calls go through (cftSupport is false)");
    return (struct team){0};
}

static ncclResult_t ncclSetEncryption(const ncclEncryptionConfig_t *config) {
    if (!config) return nccl_fail(ncclInvalidArgument, "SetEncryption : config argument is NULL");
    if (config->magic != NCCL_API_MAGIC || config->size < offsetof(ncclEncryptionConfig_t, psk))
        return nccl_fail(ncclInvalidArgument,
                         "ncclEncryptionConfig_t argument not initialized via NCCL_ENCRYPTION_CONFIG_INITIALIZER");
    if (config->mode == NCCL_ENCRYPTION_MODE_NONE) return ncclSuccess;
    if (config->mode != NCCL_ENCRYPTION_MODE_PSK)
        return nccl_fail(ncclInvalidArgument, "Invalid config encryption mode attribute value %d", config->mode);
    return nccl_fail(
        ncclInvalidUsage,
        "SetEncryption: the CPU device's NCCL does not encrypt what goes over sockets: keep the ranks on one host "
        "or in a network of your own, and use NCCL_ENCRYPTION_MODE_NONE");
}

const struct entry nccl_properties_entries[] = {
    MATH_ENTRY(cupola_nccl_table, ncclSetEncryption),
    ENTRY_AS(ncclCommQueryProperties, comm_properties),
    ENTRY_AS(ncclTeamCft, no_team),
    ENTRY_AS(ncclTeamCftMultimem, no_team),
    ENTRY_AS(ncclTeamLsa, team_of_access),
    ENTRY_AS(ncclTeamRail, team_of_rail),
    ENTRY_AS(ncclTeamRankToLsa, rank_to_access),
    ENTRY_AS(ncclTeamRankToWorld, rank_to_world),
    ENTRY_AS(ncclTeamWorld, team_of_all),
    {NULL, NULL, NULL},
};
