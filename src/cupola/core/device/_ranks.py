"""Which process of a job on this machine this is, as what started it has said in the environment."""

import os

# Variable with the rank among those of this machine -> who sets it.
LOCAL_RANKS = {
    "LOCAL_RANK": "torchrun, cupola run -n",
    "OMPI_COMM_WORLD_LOCAL_RANK": "Open MPI's mpiexec",
    "MPI_LOCALRANKID": "mpiexec of MPICH and Intel MPI",
    "MV2_COMM_WORLD_LOCAL_RANK": "MVAPICH's mpiexec",
    "PALS_LOCAL_RANKID": "PALS",
    "FLUX_TASK_LOCAL_ID": "Flux",
    "SLURM_LOCALID": "SLURM's srun",
}


def local_rank() -> int:
    """The rank of this process among those of its job on this machine; 0 outside a job.

    Raises
    ------
    ValueError
        When a variable is not a number.
    """
    for variable, setter in LOCAL_RANKS.items():
        said = os.environ.get(variable)
        if said is not None:
            if not said.isdecimal():
                raise ValueError(f"{variable} is {said!r}: it should be the rank that {setter} has given this process")
            return int(said)
    return 0
