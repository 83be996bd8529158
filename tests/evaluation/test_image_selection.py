import numpy as np
import pytest

from tigranet.evaluation.image_selection import margin_uncertainty, select_images


def draw(images=60, classes=4, units=7, seed=0):
    generator = np.random.default_rng(seed)
    probabilities = generator.dirichlet(np.ones(classes), images)
    return probabilities, generator.normal(size=(images, units)).astype(np.float32)


def test_the_distances_are_those_of_the_gradients_of_the_last_layer():
    """The same draws on the gradients themselves, computed by PyTorch, choose the same images."""
    import torch

    probabilities, representations = draw()
    gradients = []
    for p, h in zip(probabilities, representations, strict=True):
        weight = torch.zeros(4, 7, dtype=torch.float64, requires_grad=True)
        logits = torch.from_numpy(np.log(p)) + weight @ torch.from_numpy(h).double()
        torch.nn.functional.cross_entropy(logits[None], logits.argmax()[None]).backward()
        gradients.append(weight.grad.flatten().numpy())
    gradients, draws = np.stack(gradients), np.random.default_rng(3).random(8)
    chosen = [int((gradients**2).sum(1).argmax())]
    for number in draws[1:]:
        nearest = ((gradients[:, None] - gradients[None, chosen]) ** 2).sum(2).min(1)
        nearest = np.minimum(nearest, (gradients**2).sum(1))  # an image of which the network is certain is at zero
        sums = nearest.cumsum()
        chosen.append(int(np.searchsorted(sums, number * sums[-1], side="right")))
    assert select_images(probabilities, representations, 8, seed=3) == chosen


def test_images_of_which_the_classifier_is_certain_are_not_chosen_before_others():
    probabilities, representations = draw()
    probabilities[:50] = [1, 0, 0, 0]
    assert set(select_images(probabilities, representations, 10)) == set(range(50, 60))


def test_of_equal_images_one_is_chosen_before_the_others():
    probabilities, representations = draw(images=5)
    rows = np.repeat(np.arange(5), 20)
    chosen = select_images(probabilities[rows], representations[rows], 5)
    assert sorted(rows[chosen].tolist()) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("count", [1, 60, 100])
def test_no_image_is_chosen_twice_and_there_are_as_many_as_possible(count):
    steps = []
    chosen = select_images(*draw(), count, step=lambda: steps.append(1))
    assert len(set(chosen)) == len(chosen) == len(steps) == min(count, 60)


def test_the_seed_decides():
    assert select_images(*draw(), 9, seed=1) == select_images(*draw(), 9, seed=1)
    assert select_images(*draw(), 9, seed=1) != select_images(*draw(), 9, seed=2)


def test_images_that_are_all_alike_or_certain_are_chosen_by_uncertainty():
    probabilities, representations = np.tile([[1.0, 0.0]], (4, 1)), np.zeros((4, 3), np.float32)
    probabilities[2] = [0.5, 0.5]
    assert select_images(probabilities, representations, 2)[0] == 2
    assert select_images(probabilities[:0], representations[:0], 3) == []


def test_one_class_is_certain():
    assert margin_uncertainty(np.ones((2, 1))).tolist() == [0, 0]
