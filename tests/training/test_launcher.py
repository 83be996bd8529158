import lightning as L
import pytest
from lightning.fabric.plugins.environments import MPIEnvironment
from lightning.pytorch.plugins.environments import LightningEnvironment

from tigranet.training import Hardware
from tigranet.training.launcher import MPI_VARIABLES, launcher_plugins


def quiet_trainer():
    return L.Trainer(
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **Hardware("cpu").for_trainer(),
    )


@pytest.mark.filterwarnings("ignore:GPU available but not used")  # the trainer of the test uses the CPU
def test_a_training_does_not_start_mpi(monkeypatch):
    def start():
        raise AssertionError("MPI was started")

    monkeypatch.setattr(MPIEnvironment, "detect", staticmethod(start))
    assert isinstance(quiet_trainer()._accelerator_connector.cluster_environment, LightningEnvironment)


@pytest.mark.parametrize("name", MPI_VARIABLES)
def test_mpirun_is_left_to_lightning(monkeypatch, name):
    monkeypatch.setenv(name, "2")
    assert launcher_plugins() == []


def test_torchrun_is_left_to_lightning(monkeypatch):
    for name in ("TORCHELASTIC_RUN_ID", "GROUP_RANK", "RANK", "LOCAL_RANK", "WORLD_SIZE"):
        monkeypatch.setenv(name, "0")
    assert launcher_plugins() == []
