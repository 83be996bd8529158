"""The progress bar of a training."""

import io
import re
from itertools import count

import pytest
import torch
from rich.console import Console
from torch import nn

from tigranet.data import LabelledImages
from tigranet.training import Recipe, fit
from tigranet.training.duration import describe_duration


@pytest.fixture
def images():
    return LabelledImages(torch.rand(8, 1, 4, 4), torch.arange(8) % 2)


def shown(train, validation, epochs=3) -> str:
    """Return what a training of ``epochs`` shows on a terminal."""
    terminal = io.StringIO()
    module = nn.Sequential(nn.Flatten(), nn.Linear(16, 2))
    console = Console(file=terminal, force_terminal=True, width=200)
    fit(module, train, validation, Recipe(epochs=epochs, batch_size=4), console)
    return terminal.getvalue()


def test_it_ends_at_the_last_epoch_with_loss_and_validation_accuracy(images):
    text = shown(images, images)
    assert "epoch 3/3" in text
    assert " %" in text.split("validation")[-1]
    assert "loss 0." in text or "loss 1." in text


def test_without_validation_images_it_shows_none(images):
    assert "validation - " in shown(images, None)


def test_the_expected_duration_is_printed_once(images, monkeypatch):
    assert shown(images, images, epochs=20).count("expected duration: about") == 1
    assert "--quick" not in shown(images, images, epochs=20)
    monkeypatch.setattr("tigranet.training.progress.LONG_TRAINING", 0.0)
    assert "--quick gives a first model in seconds" in shown(images, images, epochs=20)
    assert "expected" not in shown(images, images, epochs=3)  # over before it is known


@pytest.mark.parametrize("validated", [True, False])
def test_the_expected_duration_includes_the_steps_before_it_is_known(images, monkeypatch, validated):
    clock = count()  # one second passes between two looks at it
    monkeypatch.setattr("tigranet.training.progress.perf_counter", lambda: float(next(clock)))
    monkeypatch.setattr("tigranet.training.progress.TIMED_SECONDS", 1e9)
    text = re.sub(r"\x1b\[[\d;]*m", "", shown(images, images if validated else None, epochs=20))  # without colours
    (seconds,) = re.findall(r"expected duration: about (\d+) s", text)
    # The clock is read at the start, once in each of the two first steps and of the ten timed ones, and at the end. A
    # timed step takes one second. 28 of 40 steps remain.
    assert int(seconds) == 13 + 28


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.1, "about 1 s"), (89.0, "about 89 s"), (90.0, "about 2 min"), (5400.0, "about 1.5 h")]
)
def test_durations_are_rounded(seconds, text):
    assert describe_duration(seconds) == text
