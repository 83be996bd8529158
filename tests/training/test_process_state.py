"""Training changes settings of the process only while it runs."""

import logging

import pytest
import torch

from tigranet.training import is_first_process
from tigranet.training.process_state import (
    LIGHTNING_LOGGERS,
    preserve_lightning_settings,
    preserve_random_state,
    seed_generators,
    seeded,
)


@pytest.fixture
def many_gpus(monkeypatch):
    """A machine that reports 8 GPUs, on which seeding or saving all of them is an error."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 8)
    for name in ("manual_seed_all", "get_rng_state", "set_rng_state"):
        monkeypatch.setattr(torch.cuda, name, lambda *_: pytest.fail("a generator of a GPU was used"))


def test_the_random_state_of_the_cpu_is_restored(many_gpus):
    state = torch.get_rng_state()
    with preserve_random_state(torch.device("cpu")):
        seed_generators(5, torch.device("cpu"))
        assert not torch.equal(torch.get_rng_state(), state)
    assert torch.equal(torch.get_rng_state(), state)


def test_seeded_gives_the_numbers_of_manual_seed_and_restores_the_state(many_gpus):
    torch.default_generator.manual_seed(11)
    expected = torch.rand(3)
    state = torch.get_rng_state()
    with seeded(11):
        assert torch.equal(torch.rand(3), expected)
    assert torch.equal(torch.get_rng_state(), state)


def test_the_random_state_is_restored_after_an_error():
    state = torch.get_rng_state()
    with pytest.raises(KeyError), seeded(1):
        raise KeyError
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.gpu
def test_the_random_state_of_a_gpu_is_restored():
    device = torch.device("cuda", 0)
    state = torch.cuda.get_rng_state(device)
    with preserve_random_state(device):
        seed_generators(5, device)
        first = torch.rand(3, device=device)
        torch.manual_seed(5)
        assert torch.equal(torch.rand(3, device=device), first)
    assert torch.equal(torch.cuda.get_rng_state(device), state)


def test_log_levels_and_the_deterministic_mode_are_restored():
    loggers = [logging.getLogger(name) for name in LIGHTNING_LOGGERS]
    levels = [logger.level for logger in loggers]
    with preserve_lightning_settings():
        assert all(logger.level == logging.WARNING for logger in loggers)
        torch.use_deterministic_algorithms(True)
    assert [logger.level for logger in loggers] == levels
    assert not torch.are_deterministic_algorithms_enabled()


def test_a_single_process_is_the_first():
    assert is_first_process()
