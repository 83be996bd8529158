"""Networks train on a white background as they do on a black one."""

from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F

from tigranet import TIGraNet
from tigranet.architecture import PRESETS
from tigranet.data import LabelledImages
from tigranet.training import Hardware, Recipe, fit
from tigranet.training.lightning_module import ClassifierModule

STEPS = {
    "paper-small": 60,
    "oriented-small": 10,
    "oriented-large": 5,
    "pyramid-small": 30,
    "LC[4,5]-GB[3]-D-MO[16]-S[0]": 30,
}
"""Number of steps in which each network learns the shapes. The other presets have the same kinds of layers
with more maps, and would take too long. Only the products of 'oriented-large' are smoothed."""
BLANKS = [
    *((preset, 0.0) for preset in PRESETS),
    *((preset, value) for preset in STEPS for value in (0.1, 1.0, None)),
]
"""Presets and values of blank images. None stands for a batch of blank images of different brightness."""


def shapes(count, size=16):
    """Rings, bars and squares at random positions, bright on black, with soft edges."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(count) % 3
    images = torch.zeros(count, 1, size, size)
    for image, label in zip(images, labels.tolist(), strict=True):
        top, left = torch.randint(3, size - 9, (2,), generator=generator).tolist()
        box = image[0, top : top + 7, left : left + 7]
        if label == 1:
            box = box[2:5]
        box[:] = 1
        if label == 0:
            box[1:-1, 1:-1] = 0
    return LabelledImages(F.avg_pool2d(images, 3, 1, 1), labels)


def inverted(data):
    return data._replace(images=1 - data.images)


def augmented_batch(preset, images, **fields):
    """Return images as a network of a preset receives them in training, always with the same random numbers."""
    network = TIGraNet(preset, num_classes=3)
    received = []
    network.forward = lambda batch: (received.append(batch), batch.new_zeros(len(batch), 3))[1]
    data = LabelledImages(images, torch.arange(len(images)) % 3)
    module = ClassifierModule(network, data, None, Recipe.for_network(network, 500, **fields))
    module._trainer = SimpleNamespace(world_size=1, global_rank=0)
    torch.manual_seed(1)
    module.batch_loss(torch.arange(len(images)))
    return received[0]


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("preset", PRESETS)
def test_augmentation_commutes_with_inversion(preset, turned):
    for images in (shapes(6).images, torch.rand(6, 1, 9, 12)):
        plain, other = (augmented_batch(preset, each, turned=turned) for each in (images, 1 - images))
        assert not torch.equal(plain, images)
        torch.testing.assert_close(other, 1 - plain, rtol=0, atol=1e-5)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("value", [0.3, 1.0])
@pytest.mark.parametrize("preset", PRESETS)
def test_augmentation_draws_no_frame_around_a_blank_image(preset, value, turned):
    blank = torch.full((6, 1, 9, 12), value)
    torch.testing.assert_close(augmented_batch(preset, blank, turned=turned), blank, rtol=1e-6, atol=0)


@pytest.mark.parametrize("preset", STEPS)
def test_shapes_are_learned_on_black_and_on_white(preset):
    accuracies = []
    for data in (shapes(30), inverted(shapes(30))):
        torch.manual_seed(0)
        network = TIGraNet(preset, num_classes=3)
        recipe = Recipe.for_network(network, 500, epochs=STEPS[preset], batch_size=30)
        fit(network, data, None, recipe, hardware=Hardware("cpu"))
        with torch.inference_mode():
            accuracies.append((network(data.images).argmax(1) == data.labels).float().mean().item())
    assert min(accuracies) >= 0.9


@pytest.mark.parametrize(("preset", "value"), BLANKS)
def test_images_without_contrast_give_finite_logits_and_gradients(preset, value):
    """Their variance is zero."""
    network = TIGraNet(preset, num_classes=3)
    images = torch.full((3, 1, 12, 12), value or 0.0)
    if value is None:
        images = images + torch.tensor([0.0, 0.5, 1.0]).reshape(3, 1, 1, 1)
    images.requires_grad_()
    for batch in (images, images[:1]):  # a batch of one has no variance at all
        logits = network(batch)
        F.cross_entropy(logits, torch.arange(len(batch))).backward()
        assert logits.isfinite().all()
        assert all(parameter.grad.isfinite().all() for parameter in network.parameters())
        assert images.grad.isfinite().all()
    assert network.eval()(images).isfinite().all()
