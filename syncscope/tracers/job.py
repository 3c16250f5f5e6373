"""Which process of a distributed job this is: torch.distributed says it where it has begun, else what started the process."""

from __future__ import annotations

import os
import sys
from typing import Any

LAUNCHERS = (  # rank and number of ranks, in the order in which they are asked
    ("RANK", "WORLD_SIZE"),  # torchrun, accelerate, deepspeed
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),  # mpirun of Open MPI
    ("PMI_RANK", "PMI_SIZE"),  # of MPICH and Intel MPI
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),  # srun
    ("SLURM_PROCID", "SLURM_NTASKS"),
)


def job() -> dict[str, Any]:
    """`rank`, `world_size` and, once it is known, `backend`, as torch.profiler calls them; nothing where it is alone."""
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        size, backend = distributed.get_world_size(), distributed.get_backend()
        return {"rank": distributed.get_rank(), "world_size": size, "backend": backend}
    for rank, size in LAUNCHERS:
        told = os.environ.get(rank, ""), os.environ.get(size, "")
        if all(number.isdecimal() for number in told) and int(told[0]) < int(told[1]) > 1:
            return {"rank": int(told[0]), "world_size": int(told[1])}
    return {}
