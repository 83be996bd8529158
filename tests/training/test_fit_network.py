import csv
import io
import logging
import signal

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from rich.console import Console
from torch import nn

from tigranet import freed_memory
from tigranet.data import LabelledImages
from tigranet.training import Diverged, Hardware, Recipe, fit
from tigranet.training.finite_images import ValidationImagesWarning


class Linear(nn.Sequential):
    """A network that is no TIGraNet: training works with any nn.Module."""

    def __init__(self):
        super().__init__(nn.Flatten(), nn.Linear(16, 2))


def easy_data(count=64, seed=0):
    """Images that are bright on the left (class 0) or on the right (class 1)."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 2, (count,), generator=generator)
    images = 0.3 * torch.rand(count, 1, 4, 4, generator=generator)
    images[labels == 0, :, :, :2] += 0.7
    images[labels == 1, :, :, 2:] += 0.7
    return LabelledImages(images, labels)


def train_linear(recipe, console=None, **arguments):
    torch.manual_seed(0)
    return fit(Linear(), easy_data(), easy_data(seed=1), recipe, console, **arguments).cpu()


def accuracy_on_new_images(module):
    data = easy_data(seed=2)
    return (module(data.images).argmax(1) == data.labels).float().mean()


def history(folder):
    return list(csv.DictReader((folder / "history.csv").read_text().splitlines()))


def test_any_module_learns():
    module = train_linear(Recipe(epochs=20, jitter=0.0))
    assert accuracy_on_new_images(module) > 0.95
    assert not module.training


def test_the_same_seed_gives_the_same_weights_and_another_seed_gives_others():
    first, second, other = (train_linear(Recipe(epochs=3, seed=seed))[1].weight for seed in (0, 0, 1))
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


def test_jitter_changes_the_training_images_and_can_be_switched_off():
    weights = [train_linear(Recipe(epochs=2, jitter=jitter))[1].weight for jitter in (0.0, 0.5)]
    assert not torch.equal(*weights)


def test_images_are_rotated_only_on_request():
    """Left and right cannot be distinguished in images at random angles."""
    images = easy_data(count=400, seed=2).images
    confidence = {
        turned: train_linear(Recipe(epochs=30, jitter=0.0, turned=turned))(images).softmax(1).amax(1).mean().item()
        for turned in (False, True)
    }
    assert confidence[False] > 0.8
    assert confidence[True] < 0.65


class Recorder(Linear):
    """Keeps the images of its training steps."""

    def __init__(self):
        super().__init__()
        self.batches = []

    def forward(self, images):
        if self.training:
            self.batches.append(images.detach().cpu().clone())
        return super().forward(images)


def test_every_epoch_trains_on_every_image_once_including_a_smaller_last_batch():
    module, data = Recorder(), easy_data(10)
    fit(module, data, None, Recipe(epochs=2, batch_size=4, jitter=0.0), hardware=Hardware("cpu"))
    assert [len(batch) for batch in module.batches] == [4, 4, 2, 4, 4, 2]
    expected = sorted(data.images.flatten(1).tolist())
    for batches in (module.batches[:3], module.batches[3:]):
        assert sorted(torch.cat(batches).flatten(1).tolist()) == expected


def test_the_loss_of_an_epoch_is_the_mean_over_images_not_over_batches(tmp_path):
    """Images have very different losses, the last batch is smaller, and the rate is too low to change the network."""
    torch.manual_seed(0)
    module, data = Linear(), easy_data(10)
    data = data._replace(images=data.images * torch.logspace(0, 2, 10)[:, None, None, None])
    expected = F.cross_entropy(module(data.images), data.labels, reduction="none").detach()
    assert expected.std() > expected.mean()
    recipe = Recipe(epochs=3, batch_size=4, jitter=0.0, learning_rate=1e-12)
    fit(module, data, None, recipe, folder=tmp_path, hardware=Hardware("cpu"))
    for row in history(tmp_path):
        assert float(row["loss"]) == pytest.approx(expected.mean().item(), rel=1e-5)


def test_progress_shows_epochs_loss_accuracy_and_time():
    text = io.StringIO()
    train_linear(Recipe(epochs=4), Console(file=text, width=120))
    assert "epoch 4/4" in text.getvalue()
    assert "loss 0." in text.getvalue()
    assert "validation " in text.getvalue()
    assert "%" in text.getvalue()


def test_nothing_is_printed_without_a_console(capfd):
    train_linear(Recipe(epochs=1))
    assert capfd.readouterr() == ("", "")


@pytest.mark.skipif(freed_memory.glibc() is None, reason="the C library is not glibc")
def test_freed_memory_is_kept_during_the_training_and_not_afterwards():
    open_blocks = []

    class Recording(Linear):
        def forward(self, images):
            open_blocks.append(freed_memory._open_blocks)
            return super().forward(images)

    fit(Recording(), easy_data(), None, Recipe(epochs=1), hardware=Hardware(accelerator="cpu"))
    assert set(open_blocks) == {1}
    assert freed_memory._open_blocks == 0


def test_a_network_in_evaluation_mode_is_put_into_training_mode():
    """A trained network is in evaluation mode, in which dropout and running moments do nothing."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(16), nn.Linear(16, 2))
    for _ in range(2):
        before = module[1].num_batches_tracked.item()
        fit(module, easy_data(), None, Recipe(epochs=2))
        assert module[1].num_batches_tracked.item() == before + 4
        assert not module.training


def test_an_interrupt_raises_keyboard_interrupt(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("tigranet.training.lightning_module.ClassifierModule.training_step", interrupt)
    handler = signal.getsignal(signal.SIGINT)
    try:
        with pytest.raises(KeyboardInterrupt):
            train_linear(Recipe(epochs=1), hardware=Hardware("cpu"))
    finally:
        signal.signal(signal.SIGINT, handler)


def test_balanced_classes_have_the_same_weight():
    """For blank images, the network learns the share of each class in the loss."""
    labels = torch.tensor([0] * 90 + [1] * 10)
    blank = LabelledImages(torch.zeros(100, 1, 4, 4), labels)
    probabilities = {}
    for balanced in (False, True):
        torch.manual_seed(0)
        recipe = Recipe(epochs=150, batch_size=100, learning_rate=0.05, jitter=0.0, balanced=balanced)
        probabilities[balanced] = fit(Linear(), blank, None, recipe).cpu()(blank.images[:1]).softmax(1)[0, 1].item()
    assert probabilities[False] == pytest.approx(0.1, abs=0.02)
    assert probabilities[True] == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize(
    "fields", [{"schedule": "cosine"}, {"keep": "best"}, {"patience": 2}, {"weight_decay": 0.1}, {"average": 0.9}]
)
def test_other_recipes_learn_too(fields):
    assert accuracy_on_new_images(train_linear(Recipe(epochs=20, jitter=0.0, **fields))) > 0.9


def test_the_best_weights_are_those_of_the_lowest_validation_loss(tmp_path):
    """With a learning rate that is too high, the loss rises and falls."""
    recipe = Recipe(epochs=12, learning_rate=1.0, schedule="cosine", keep="best")
    module = train_linear(recipe, folder=tmp_path)
    validation = easy_data(seed=1)
    loss = F.cross_entropy(module(validation.images), validation.labels).item()
    rows = history(tmp_path)
    assert loss == pytest.approx(min(float(row["validation_loss"]) for row in rows), rel=1e-4, abs=1e-6)
    assert [int(row["epoch"]) for row in rows] == list(range(1, 13))


class NanInValidation(Linear):
    def forward(self, images):
        return super().forward(images) if self.training else images.new_full((len(images), 2), torch.nan)


def test_a_validation_loss_that_is_always_nan_is_an_error():
    with pytest.warns(ValidationImagesWarning), pytest.raises(Diverged, match=r"validation loss.* learning rate"):
        fit(NanInValidation(), easy_data(), easy_data(seed=1), Recipe(epochs=2, keep="best"))


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("deterministic", [True, False])
def test_the_settings_of_the_process_are_restored(before, deterministic):
    log, module = logging.getLogger("lightning.pytorch"), Linear()
    level, random_state = log.level, torch.get_rng_state()
    log.setLevel(logging.ERROR)
    torch.use_deterministic_algorithms(before)
    try:
        hardware = Hardware("cpu", deterministic=deterministic)
        fit(module, easy_data(), None, Recipe(epochs=1), hardware=hardware)
        assert torch.are_deterministic_algorithms_enabled() == before
        assert log.level == logging.ERROR
        assert torch.equal(torch.get_rng_state(), random_state)
    finally:
        torch.use_deterministic_algorithms(False)
        log.setLevel(level)


def test_training_on_the_cpu_leaves_the_random_generators_of_gpus_alone(monkeypatch):
    monkeypatch.setattr(torch.cuda, "manual_seed_all", lambda _: pytest.fail("all GPUs were seeded"))
    fit(Linear(), easy_data(), None, Recipe(epochs=1), hardware=Hardware("cpu"))


def test_a_process_group_that_existed_before_survives():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        fit(Linear(), easy_data(), None, Recipe(epochs=1), hardware=Hardware("cpu"))
        assert dist.is_initialized()
        total = torch.ones(2)
        dist.all_reduce(total)
        assert total.tolist() == [1, 1]
    finally:
        dist.destroy_process_group()


def test_a_process_group_that_the_training_creates_is_destroyed(monkeypatch):
    created = []
    create = dist.init_process_group
    monkeypatch.setattr(dist, "init_process_group", lambda *args, **more: (created.append(1), create(*args, **more)))
    for name in ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK", "LOCAL_RANK", "WORLD_SIZE"):
        monkeypatch.setenv(name, "")  # Lightning sets these, and the fixture removes them afterwards.
        monkeypatch.delenv(name)
    fit(Linear(), easy_data(), None, Recipe(epochs=1), hardware=Hardware("cpu", strategy="ddp"))
    assert created
    assert not dist.is_initialized()


def test_patience_stops_the_training_early(tmp_path):
    """Labels do not depend on the images, so the validation loss soon rises."""
    train, validation = (LabelledImages(torch.rand(40, 1, 4, 4), torch.arange(40) % 2) for _ in range(2))
    fit(Linear(), train, validation, Recipe(epochs=40, learning_rate=0.5, patience=4), folder=tmp_path)
    assert len(history(tmp_path)) < 40


@pytest.mark.parametrize("learning_rate", [1e9, 1e37])
def test_a_training_that_diverges_is_an_error(learning_rate):
    with pytest.raises(Diverged, match=r"loss was (nan|inf|\d.*e\+\d+) in epoch 1.* learning rate"):
        train_linear(Recipe(epochs=1, batch_size=4, schedule="cosine", learning_rate=learning_rate))


def test_a_training_that_diverges_keeps_the_last_finite_checkpoint(tmp_path, monkeypatch):
    """The weights become NaN in the last step of the third epoch, after its loss was computed."""
    module = Linear()

    def step(optimizer, closure):
        closure()
        steps.append(optimizer)
        with torch.no_grad():
            module[1].weight += torch.nan if len(steps) == 6 else 1e-3

    steps = []
    monkeypatch.setattr(torch.optim.Adam, "step", step)
    recipe = Recipe(epochs=3, batch_size=32, learning_rate=0.25, keep="best")
    with pytest.raises(Diverged, match=r"weights .*epoch 3.* learning rate.*0\.25"):
        fit(module, easy_data(), easy_data(seed=1), recipe, folder=tmp_path, hardware=Hardware("cpu"))
    for name in ("last.ckpt", "best.ckpt"):
        checkpoint = torch.load(tmp_path / name, weights_only=True)
        assert all(tensor.isfinite().all() for tensor in checkpoint["state_dict"].values())
    assert torch.load(tmp_path / "last.ckpt", weights_only=True)["epoch"] == 1  # counted from 0
    assert [int(row["epoch"]) for row in history(tmp_path)] == [1, 2]


def test_a_buffer_that_was_infinite_before_is_no_divergence():
    module = Linear()
    module.register_buffer("mask", torch.tensor([0.0, -torch.inf]))
    fit(module, easy_data(), None, Recipe(epochs=1), hardware=Hardware("cpu"))
    assert module.mask[1] == -torch.inf


@pytest.mark.parametrize("precision", ["bf16", "32", "tf32"])
def test_other_precisions_and_the_deterministic_mode_learn(precision):
    hardware = Hardware(accelerator="cpu", precision=precision, deterministic=True)
    module = train_linear(Recipe(epochs=20, jitter=0.0), hardware=hardware)
    assert accuracy_on_new_images(module) > 0.9
    assert next(module.parameters()).dtype == torch.float32


def test_tensorboard_files_are_written(tmp_path):
    pytest.importorskip("tensorboard")
    train_linear(Recipe(epochs=2), folder=tmp_path, log="tensorboard")
    assert list(tmp_path.glob("tensorboard/events.out.*"))


IMAGES, LABELS, _ = easy_data()
WITH_NAN = IMAGES.clone()
WITH_NAN[3] = torch.nan


@pytest.mark.parametrize(
    ("train", "validation", "error", "message"),
    [
        ((IMAGES, LABELS[:-1]), (IMAGES, LABELS), ValueError, "64 training images and 63 labels"),
        ((WITH_NAN, LABELS), (IMAGES, LABELS), ValueError, "training images.* NaN .*position 3"),
        ((IMAGES, LABELS), (IMAGES[:0], LABELS[:0]), ValueError, "no validation images"),
        (
            ((255 * IMAGES).byte(), LABELS),
            (IMAGES, LABELS),
            TypeError,
            r"training images .* got torch.uint8.*\.float\(\) / 255",
        ),
        ((IMAGES, LABELS.float()), (IMAGES, LABELS), ValueError, "training labels .*torch.int64, got torch.float32"),
        ((IMAGES, LABELS), (IMAGES, LABELS - 1), ValueError, "validation labels .* -1$"),
    ],
)
def test_invalid_data_are_errors(train, validation, error, message, without_shape_checks):
    with pytest.raises(error, match=message):
        fit(Linear(), LabelledImages(*train), LabelledImages(*validation), Recipe(epochs=1))


@pytest.mark.parametrize(
    ("recipe", "arguments", "message"),
    [
        ({}, {"log": "tensorbord"}, "log .*csv, tensorboard, got 'tensorbord'"),
        ({}, {"resume": True}, "resume.* folder"),
        ({"keep": "best"}, {}, "keep='best'.* validation images"),
        ({"patience": 2}, {}, "patience.* validation images"),
        ({"dropout": 0.3}, {}, "dropout is 0.3, but Linear .*dropout=0"),
    ],
)
def test_invalid_arguments_are_errors(recipe, arguments, message, without_shape_checks):
    with pytest.raises(ValueError, match=message):
        fit(Linear(), easy_data(), None, Recipe(epochs=1, **recipe), **arguments)
