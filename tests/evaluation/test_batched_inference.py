import pytest
import torch
from torch import nn

from tigranet.evaluation.batched_inference import apply_in_batches, inference, module_device, require_finite


class Scale(nn.Module):
    """Multiplies the sum of each image by a parameter."""

    def __init__(self, device="cpu"):
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(2.0, device=device))

    def forward(self, images):
        return self.factor * images.flatten(1).sum(1, keepdim=True)


def test_the_outputs_of_all_batches_are_concatenated():
    images = torch.rand(7, 1, 3, 3)
    expected = 2 * images.flatten(1).sum(1, keepdim=True)
    for size in (1, 3, 7, 100):
        torch.testing.assert_close(apply_in_batches(Scale(), images.split(size)), expected)


def test_another_function_of_the_module_can_be_applied():
    images = torch.rand(7, 1, 3, 3)
    output = apply_in_batches(Scale(), images.split(3), lambda batch: batch.amax((1, 2, 3)))
    assert torch.equal(output, images.amax((1, 2, 3)))


def test_no_images_give_an_empty_output():
    assert apply_in_batches(Scale(), torch.rand(0, 1, 3, 3).split(4)).shape == (0, 1)


def test_outputs_have_no_gradients():
    assert not apply_in_batches(Scale(), torch.rand(2, 1, 3, 3).split(4)).requires_grad


def test_batches_are_moved_to_the_device_of_the_module_and_outputs_to_the_cpu():
    """The meta device stands for a GPU."""
    devices = []

    def function(batch):
        devices.append(batch.device.type)
        return torch.zeros(len(batch))

    output = apply_in_batches(Scale("meta"), torch.rand(5, 1, 2, 2).split(2), function)
    assert devices == ["meta"] * 3
    assert output.device.type == "cpu"


def test_batches_are_used_one_at_a_time():
    events = []

    def batches():
        for number in range(3):
            events.append(f"read {number}")
            yield torch.rand(2, 1, 2, 2)

    apply_in_batches(Scale(), batches(), lambda batch: (events.append("apply"), batch)[1])
    assert events == ["read 0", "apply", "read 1", "apply", "read 2", "apply"]


def test_the_module_is_in_evaluation_mode_and_every_part_gets_its_mode_back():
    module = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(4), nn.Dropout(0.9))
    module[2].eval()  # a part that stays in evaluation mode while the rest is trained
    moments, images = module[1].running_mean.clone(), torch.rand(5, 1, 2, 2)
    first, second = (apply_in_batches(module, images.split(2)) for _ in range(2))
    assert torch.equal(first, second)
    assert torch.equal(module[1].running_mean, moments)
    assert [part.training for part in module.modules()] == [True, True, True, False]


def test_the_mode_is_restored_after_an_error():
    module = nn.Linear(3, 2).train()
    with pytest.raises(KeyError), inference(module):
        raise KeyError
    assert module.training


def test_the_device_of_a_module_without_parameters_is_that_of_its_buffers_or_the_cpu():
    module = nn.Module()
    assert module_device(module) == torch.device("cpu")
    module.register_buffer("values", torch.zeros(1, device="meta"))
    assert module_device(module) == torch.device("meta")


def test_outputs_that_are_not_finite_are_counted_and_the_first_is_named():
    outputs = torch.rand(7, 3, 2)
    assert require_finite(outputs) is outputs
    assert require_finite(outputs[:0]).shape == (0, 3, 2)
    outputs[4, 0, 1], outputs[6, 2, 0] = float("nan"), float("inf")
    with pytest.raises(ValueError, match=r"2 of 7 images.* position 4"):
        require_finite(outputs)
