import io

import pytest
import torch
from rich.console import Console
from torch import nn

from tigranet.data import Labelled
from tigranet.training import Recipe, fit


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
    return Labelled(images, labels)


def trained(recipe, console=None):
    torch.manual_seed(0)
    return fit(Linear(), easy(), easy(seed=1), recipe, console).cpu()


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


def test_wrong_data_are_refused_before_training(as_a_user):
    images, labels, _ = easy()
    nan = images.clone()
    nan[3] = torch.nan
    recipe = Recipe(epochs=1)
    for train, validation, message in (
        (Labelled(images, labels[:-1]), easy(), "one label an image, got 64 training images and 63 labels"),
        (Labelled(nan, labels), easy(), "the training images hold NaN or infinity"),
        (easy(), Labelled(images[:0], labels[:0]), "there are no validation images"),
    ):
        with pytest.raises(ValueError, match=message):
            fit(Linear(), train, validation, recipe)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epochs": 0}, "epochs is at least 1, got 0"),
        ({"batch_size": 0}, "batch_size is at least 1, got 0"),
        ({"learning_rate": 0.0}, "learning_rate is positive, got 0.0"),
        ({"jitter": 2.0}, r"jitter is a part of a pixel in \[0, 1\], got 2.0"),
    ],
)
def test_a_recipe_that_cannot_be_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Recipe(**({"epochs": 1} | arguments))


def test_a_recipe_for_more_images_has_fewer_epochs():
    recipes = [Recipe.for_images(count) for count in (50, 500, 5_000, 50_000)]
    assert [recipe.epochs for recipe in recipes] == [120, 120, 60, 20]
    assert Recipe.for_images(500, epochs=3, seed=2) == Recipe(epochs=3, seed=2)


def test_a_recipe_prints_its_numbers():
    assert str(Recipe(epochs=3)) == "epochs 3, batch size 50, learning rate 0.01, jitter 0.5, seed 0"
