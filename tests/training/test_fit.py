import csv
import io
import logging
import signal
from types import SimpleNamespace

import pytest
import torch
from rich.console import Console
from torch import nn

from tigranet.data import LabelledImages
from tigranet.training import Diverged, Hardware, Recipe, fit
from tigranet.training.lightning_module import ClassifierModule


class Linear(nn.Sequential):
    """Training knows nn.Module, not TIGraNet."""

    def __init__(self):
        super().__init__(nn.Flatten(), nn.Linear(16, 2))


def easy(count=64, seed=0):
    """Bright on the left or on the right."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 2, (count,), generator=generator)
    images = 0.3 * torch.rand(count, 1, 4, 4, generator=generator)
    images[labels == 0, :, :, :2] += 0.7
    images[labels == 1, :, :, 2:] += 0.7
    return LabelledImages(images, labels)


def trained(recipe, console=None, **how):
    torch.manual_seed(0)
    return fit(Linear(), easy(), easy(seed=1), recipe, console, **how).cpu()


def test_any_module_learns():
    module = trained(Recipe(epochs=20, jitter=0.0))
    data = easy(seed=2)
    assert (module(data.images).argmax(1) == data.labels).float().mean() > 0.95
    assert not module.training


def test_the_same_recipe_gives_the_same_weights_and_another_seed_others():
    first, second, other = (trained(Recipe(epochs=3, seed=seed))[1].weight for seed in (0, 0, 1))
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


def test_jitter_changes_what_is_seen_and_may_be_left_out():
    weights = [trained(Recipe(epochs=2, jitter=jitter))[1].weight for jitter in (0.0, 0.5)]
    assert not torch.equal(*weights)


def test_images_are_turned_only_if_asked():
    """Bright on the left or on the right cannot be told once it is turned."""
    data = easy(count=400, seed=2)
    sure = {
        turned: trained(Recipe(epochs=30, jitter=0.0, turned=turned))(data.images).softmax(1).amax(1).mean().item()
        for turned in (False, True)
    }
    assert sure[False] > 0.8
    assert sure[True] < 0.65


def test_an_incomplete_last_batch_is_trained_on_too():
    assert torch.isfinite(trained(Recipe(epochs=1, batch_size=63))[1].weight).all()


def test_progress_shows_epochs_loss_accuracy_and_time():
    text = io.StringIO()
    trained(Recipe(epochs=4), Console(file=text, width=120))
    assert "epoch 4/4" in text.getvalue()
    assert "loss 0." in text.getvalue()
    assert "validation " in text.getvalue()
    assert "%" in text.getvalue()


def test_nothing_is_printed_unless_asked_for(capfd):
    trained(Recipe(epochs=1))
    assert capfd.readouterr() == ("", "")


def test_a_network_that_was_trained_before_is_trained_on():
    """It comes in evaluation mode, in which dropout and running moments stand still."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(16), nn.Linear(16, 2))
    for _ in range(2):
        before = module[1].num_batches_tracked.item()
        fit(module, easy(), None, Recipe(epochs=2))
        assert module[1].num_batches_tracked.item() == before + 4
        assert not module.training


def test_an_interrupt_is_an_interrupt(monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("tigranet.training.lightning_module.ClassifierModule.training_step", stop)
    handler = signal.getsignal(signal.SIGINT)
    try:
        with pytest.raises(KeyboardInterrupt):
            trained(Recipe(epochs=1))
    finally:
        signal.signal(signal.SIGINT, handler)


def test_classes_of_different_sizes_count_the_same_if_asked():
    """With nothing to see, the bias is the logarithm of how much a class counts."""
    labels = torch.tensor([0] * 90 + [1] * 10)
    blank = LabelledImages(torch.zeros(100, 1, 4, 4), labels)
    answers = {}
    for balanced in (False, True):
        torch.manual_seed(0)
        recipe = Recipe(epochs=150, batch_size=100, learning_rate=0.05, jitter=0.0, balanced=balanced)
        answers[balanced] = fit(Linear(), blank, None, recipe).cpu()(blank.images[:1]).softmax(1)[0, 1].item()
    assert answers[False] == pytest.approx(0.1, abs=0.02)
    assert answers[True] == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("how", [{"schedule": "cosine"}, {"keep": "best"}, {"patience": 2}])
def test_other_recipes_learn_too(how):
    module = trained(Recipe(epochs=20, jitter=0.0, **how))
    data = easy(seed=2)
    assert (module(data.images).argmax(1) == data.labels).float().mean() > 0.9


def test_the_best_weights_are_those_of_the_lowest_validation_loss(tmp_path):
    """At a rate that is too high, the loss goes up and down."""
    recipe = Recipe(epochs=12, learning_rate=1.0, schedule="cosine", keep="best")
    module = trained(recipe, folder=tmp_path)
    held_out = easy(seed=1)
    loss = nn.functional.cross_entropy(module(held_out.images), held_out.labels).item()
    history = list(csv.DictReader((tmp_path / "history.csv").read_text().splitlines()))
    assert loss == pytest.approx(min(float(row["validation_loss"]) for row in history), rel=1e-4, abs=1e-6)
    assert [int(row["epoch"]) for row in history] == list(range(1, 13))


class NeverANumber(Linear):
    def forward(self, images):
        return super().forward(images) if self.training else torch.full((len(images), 2), torch.nan)


def test_a_validation_loss_that_is_never_a_number_has_no_best_weights():
    with pytest.raises(Diverged, match="the validation loss was never a number: train at a lower rate"):
        fit(NeverANumber(), easy(), easy(seed=1), Recipe(epochs=2, keep="best"))


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("asked", [True, False])
def test_the_process_is_left_as_it_was(before, asked):
    log, module = logging.getLogger("lightning.pytorch"), Linear()
    level, random = log.level, torch.get_rng_state()
    log.setLevel(logging.ERROR)
    torch.use_deterministic_algorithms(before)
    try:
        fit(module, easy(), None, Recipe(epochs=1), hardware=Hardware("cpu", deterministic=asked))
        assert torch.are_deterministic_algorithms_enabled() == before
        assert log.level == logging.ERROR
        assert torch.equal(torch.get_rng_state(), random)
    finally:
        torch.use_deterministic_algorithms(False)
        log.setLevel(level)


def test_patience_ends_the_training_early(tmp_path):
    """Images and labels have nothing to do with each other: the validation loss soon rises."""
    noise = LabelledImages(torch.rand(40, 1, 4, 4), torch.arange(40) % 2)
    other = LabelledImages(torch.rand(40, 1, 4, 4), torch.arange(40) % 2)
    fit(Linear(), noise, other, Recipe(epochs=40, learning_rate=0.5, patience=4), folder=tmp_path)
    assert len((tmp_path / "history.csv").read_text().splitlines()) < 41


def test_a_training_that_diverges_says_so():
    for rate in (1e9, 1e37):
        with pytest.raises(Diverged, match=r"the loss became (nan|inf|\d.*e\+\d+) in epoch 1: train at a lower rate"):
            trained(Recipe(epochs=1, batch_size=4, schedule="cosine", learning_rate=rate))


@pytest.mark.parametrize("precision", ["bf16", "32", "tf32"])
def test_other_precisions_and_the_deterministic_mode_learn(precision):
    how = Hardware(accelerator="cpu", precision=precision, deterministic=True)
    module = trained(Recipe(epochs=20, jitter=0.0), hardware=how)
    data = easy(seed=2)
    assert (module(data.images).argmax(1) == data.labels).float().mean() > 0.9
    assert next(module.parameters()).dtype == torch.float32


@pytest.mark.skipif(torch.accelerator.is_available(), reason="there is one")
def test_a_gpu_that_is_not_there_is_named():
    with pytest.raises(ValueError, match="there is no GPU that PyTorch can use: leave the accelerator to 'auto'"):
        trained(Recipe(epochs=1), hardware=Hardware("gpu"))


def test_tensorboard_gets_the_losses(tmp_path):
    pytest.importorskip("tensorboard")
    trained(Recipe(epochs=2), folder=tmp_path, log="tensorboard")
    assert list(tmp_path.glob("tensorboard/events.out.*"))


def test_wrong_data_are_refused_before_training(as_a_user):
    images, labels, _ = easy()
    nan = images.clone()
    nan[3] = torch.nan
    recipe = Recipe(epochs=1)
    for train, validation, message in (
        (LabelledImages(images, labels[:-1]), easy(), "one label an image, got 64 training images and 63 labels"),
        (LabelledImages(nan, labels), easy(), "the training images hold NaN or infinity"),
        (easy(), LabelledImages(images[:0], labels[:0]), "there are no validation images"),
        (
            LabelledImages((255 * images).byte(), labels),
            easy(),
            r"training images are .* got torch.uint8: use .float\(\) / 255",
        ),
        (
            LabelledImages(images, labels.float()),
            easy(),
            "training labels are whole numbers from 0 on, torch.int64, got torch.f",
        ),
        (easy(), LabelledImages(images, labels - 1), "validation labels are whole numbers from 0 on, .* from -1"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            fit(Linear(), train, validation, recipe)
    with pytest.raises(ValueError, match="log is one of csv, tensorboard, got 'tensorbord'"):
        fit(Linear(), easy(), None, recipe, log="tensorbord")
    with pytest.raises(ValueError, match="goes on from the folder of its checkpoints: give the folder"):
        fit(Linear(), easy(), None, recipe, resume=True)
    with pytest.raises(ValueError, match="the best weights are those of the lowest validation loss: give validation"):
        fit(Linear(), easy(), None, Recipe(epochs=1, keep="best"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epochs": 0}, "epochs is at least 1, got 0"),
        ({"batch_size": 0}, "batch_size is at least 1, got 0"),
        ({"learning_rate": 0.0}, "learning_rate is positive and finite, got 0.0"),
        ({"learning_rate": float("inf")}, "learning_rate is positive and finite, got inf"),
        ({"epochs": 1.5}, "epochs is a whole number, got 1.5"),
        ({"jitter": 2.0}, r"jitter is a part of a pixel in \[0, 1\], got 2.0"),
        ({"zoom": 1.0}, r"zoom is a part of the image's size in \[0, 1\), got 1.0"),
        ({"stretch": -0.1}, r"stretch is a part of the image's size in \[0, 1\), got -0.1"),
        ({"warp": 2.0}, r"warp is a part of the image's size in \[0, 1\), got 2.0"),
        ({"smoothing": 1.0}, r"smoothing is a part of a label in \[0, 1\), got 1.0"),
        ({"as_is": 1.0}, r"as_is is a part of the images in \[0, 1\), got 1.0"),
        ({"tone": -0.5}, r"tone is a strength in \[0, 5\], got -0.5"),
        ({"tone": float("nan")}, r"tone is a strength in \[0, 5\], got nan"),
        ({"tone": 1e3}, r"tone is a strength in \[0, 5\], got 1000.0"),
        ({"patience": 0}, "patience is at least 1, got 0"),
    ],
)
def test_a_recipe_that_cannot_be_is_refused(arguments, message, as_a_user):
    with pytest.raises(ValueError, match=message):
        Recipe(**({"epochs": 1} | arguments))


def test_a_recipe_for_few_images_has_enough_steps_and_for_many_fewer_epochs():
    recipes = {count: Recipe.for_images(count) for count in (3, 50, 200, 500, 1_000, 5_000, 50_000)}
    for count, recipe in recipes.items():
        steps = recipe.epochs * -(-count // recipe.batch_size)
        assert 1_200 <= steps <= 6_000
    assert [recipe.epochs for recipe in recipes.values()] == [1200, 1200, 300, 120, 60, 60, 20]
    assert Recipe.for_images(500, epochs=3, seed=2) == Recipe(epochs=3, seed=2)


def test_a_large_network_learns_at_a_lower_rate():
    assert Recipe.for_images(500, 8_563).learning_rate == 1e-2
    assert Recipe.for_images(500, 441_970).learning_rate == 3e-3


def test_images_are_deformed_for_mixed_convolutions_and_so_they_are_for_no_others():
    mixed, other = (Recipe.for_images(500, 8_563, mixed=mixed) for mixed in (True, False))
    assert mixed.deformed
    assert not other.deformed
    assert other.smoothing == other.as_is == 0
    assert not Recipe.for_images(500, 8_563, mixed=True, zoom=0.0, stretch=0.0, warp=0.0).deformed


def test_very_few_images_are_shown_in_other_tones_too():
    few, more = (Recipe.for_images(count, 40_505, mixed=True) for count in (200, 201))
    assert few.tone > more.tone == 0
    assert few.warp > more.warp
    assert Recipe.for_images(50).tone == 0


class Seen(nn.Module):
    """Keeps the images that it is shown, and answers with what it has learned to, whatever they are."""

    def __init__(self):
        super().__init__()
        self.answer, self.seen = nn.Parameter(torch.tensor([0.3, -1.0, 0.2])), []

    def forward(self, images):
        self.seen.append(images.clone())
        return self.answer.expand(len(images), 3)


def shown(images, **how):
    """What a training of one step showed a network, and the loss."""
    module = Seen()
    labels = torch.arange(len(images)) % 3
    task = ClassifierModule(module, LabelledImages(images, labels), None, Recipe(1, len(images), **how))
    task._trainer = SimpleNamespace(world_size=1, global_rank=0)
    return task.loss_of(torch.arange(len(images))), module


def test_part_of_the_images_are_shown_as_they_are():
    torch.manual_seed(0)
    images = torch.rand(400, 1, 7, 7)
    (seen,) = shown(images, zoom=0.2, stretch=0.1, warp=0.03, as_is=0.25)[1].seen
    same = (seen == images).flatten(1).all(1)
    assert 0.18 < same.float().mean() < 0.32
    assert not (seen[~same] == images[~same]).flatten(1).all(1).any()
    (seen,) = shown(images, zoom=0.2)[1].seen
    assert not (seen == images).flatten(1).all(1).any()


@pytest.mark.parametrize("how", [{"jitter": 0.0}, {"zoom": 0.2, "as_is": 0.9}])
def test_images_that_are_not_moved_have_another_tone_too(how):
    images = torch.rand(40, 1, 7, 7)
    (seen,) = shown(images, tone=0.5, **how)[1].seen
    brighter = seen.flatten(1).mean(1) / images.flatten(1).mean(1)
    assert len(set(brighter.tolist())) == 40
    assert 0.5 < brighter.min() < 0.8
    assert 1.2 < brighter.max() < 2.2


def test_a_smoothed_label_is_spread_over_all_classes():
    loss, module = shown(torch.rand(6, 1, 5, 5), smoothing=0.3)
    given = module.answer.detach().log_softmax(0)
    wanted = torch.full((3, 3), 0.1) + 0.7 * torch.eye(3)
    torch.testing.assert_close(loss.detach(), -(wanted @ given).mean())


def test_a_recipe_prints_its_numbers():
    assert "zoom 0.1" in str(Recipe(epochs=3, zoom=0.1))
    assert str(Recipe(epochs=3)) == "epochs 3, batch size 50, learning rate 0.01, jitter 0.5, seed 0"
    other = Recipe(epochs=3, balanced=True, schedule="cosine", patience=4)
    assert str(other) == (
        "epochs 3, batch size 50, learning rate 0.01, schedule cosine, jitter 0.5, balanced, patience 4, seed 0"
    )


def test_choices_that_are_none_are_refused(as_a_user):
    with pytest.raises(ValueError, match="schedule is 'one-cycle' or 'cosine', got 'step'"):
        Recipe(epochs=1, schedule="step")
    with pytest.raises(ValueError, match="precision is one of tf32, 32, bf16, 16, got '8'"):
        Hardware(precision="8")
    with pytest.raises(ValueError, match="devices and nodes are at least 1, got 0 and 1"):
        Hardware(devices=0)
