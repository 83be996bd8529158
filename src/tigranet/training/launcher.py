"""How the processes of a training were started."""

import os

from lightning.fabric.plugins.environments.cluster_environment import ClusterEnvironment
from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.fabric.plugins.environments.lsf import LSFEnvironment
from lightning.fabric.plugins.environments.slurm import SLURMEnvironment
from lightning.fabric.plugins.environments.torchelastic import TorchElasticEnvironment

MPI_VARIABLES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "MV2_COMM_WORLD_SIZE", "MPI_LOCALNRANKS")
"""Environment variables of which Open MPI, MPICH, Intel MPI and MVAPICH set at least one in every process."""


def launcher_plugins() -> list[ClusterEnvironment]:
    """Return the plugin with which Lightning starts the processes itself, unless something else has started them.

    Without this plugin, Lightning asks the package mpi4py, where it is installed, whether ``mpirun`` has started the
    process. The import of mpi4py starts MPI with a background process of its own. Such a start takes seconds, and it
    fails now and then after other trainings were killed.

    Returns:
        An empty list if torchrun, SLURM, LSF or ``mpirun`` has started the process: Lightning finds out which.

    Example:
        >>> [type(plugin).__name__ for plugin in launcher_plugins()]
        ['LightningEnvironment']
    """
    is_started = any(kind.detect() for kind in (TorchElasticEnvironment, SLURMEnvironment, LSFEnvironment))
    return [] if is_started or any(name in os.environ for name in MPI_VARIABLES) else [LightningEnvironment()]
