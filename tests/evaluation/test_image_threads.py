"""Parts of a batch in several threads: the same results, and the settings of the process as before."""

import threading

import pytest
import torch

from tigranet import TIGraNet
from tigranet.evaluation import image_threads
from tigranet.evaluation.image_threads import apply_in_threads
from tigranet.ops import using
from tigranet.ops.mode import kernel_mode


@pytest.fixture(autouse=True)
def _two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


class Recorder:
    """A function that doubles images, and records where and how it was called."""

    def __init__(self):
        self.sizes, self.threads, self.settings = [], set(), set()

    def __call__(self, images):
        self.sizes.append(len(images))
        self.threads.add(threading.current_thread().name)
        settings = torch.get_num_threads(), torch.is_inference_mode_enabled(), kernel_mode()
        self.settings.add(settings)
        return 2 * images


def test_results_keep_the_order_of_the_images():
    for count in range(8, 90):
        images, function = torch.arange(count).reshape(count, 1), Recorder()
        assert torch.equal(apply_in_threads(function, images), 2 * images)
        assert len(set(function.sizes)) == 1
        assert len(function.sizes) * function.sizes[0] - count < function.sizes[0]
        assert threading.current_thread().name not in function.threads


@pytest.mark.parametrize("inference", [True, False])
def test_threads_have_the_settings_of_the_caller_and_one_core_each(inference):
    function = Recorder()
    with torch.inference_mode(inference), using("plain"):
        apply_in_threads(function, torch.rand(50, 1))
    assert function.settings == {(1, inference, "plain")}
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("count", [0, 1, 7])
def test_small_batches_are_not_divided(count):
    images, function = torch.rand(count, 1), Recorder()
    assert apply_in_threads(function, images).shape == images.shape
    assert (function.sizes, function.threads) == ([count], {threading.current_thread().name})


def test_no_threads_are_used_where_there_is_one_core_or_very_many(monkeypatch):
    for threads in (1, 2):
        monkeypatch.setattr(image_threads, "MAX_THREADS", 1)
        torch.set_num_threads(threads)
        function = Recorder()
        apply_in_threads(function, torch.rand(50, 1))
        assert function.sizes == [50]


def test_an_error_in_a_thread_is_raised_and_the_settings_are_restored():
    def fail(images):
        raise ValueError(f"cannot read {len(images)} images")

    with pytest.raises(ValueError, match="cannot read"):
        apply_in_threads(fail, torch.rand(50, 1))
    assert torch.get_num_threads() == 2


def test_the_last_of_overlapping_blocks_restores_the_number_of_threads():
    first, second = image_threads._one_thread_per_operation(), image_threads._one_thread_per_operation()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert torch.get_num_threads() == 1
    second.__exit__(None, None, None)
    assert torch.get_num_threads() == 2


def test_a_network_gives_equal_images_equal_bits_in_all_parts():
    net, image = TIGraNet("SC[2,2]-DP[20]-S[2]", 3).eval(), torch.rand(1, 1, 8, 8)
    with torch.inference_mode():
        logits = apply_in_threads(net, image.expand(83, -1, -1, -1))
        assert torch.equal(logits, logits[:1].expand_as(logits))
        torch.testing.assert_close(logits[:1], net(image))
