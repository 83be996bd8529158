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


def apply_to_one(function, batch):
    (result,) = apply_in_threads(function, [batch])
    return result


def test_results_keep_the_order_of_the_images():
    for count in range(8, 90):
        images, function = torch.arange(count).reshape(count, 1), Recorder()
        assert torch.equal(apply_to_one(function, images), 2 * images)
        assert len(set(function.sizes)) == 1
        assert len(function.sizes) * function.sizes[0] - count < function.sizes[0]
        assert threading.current_thread().name not in function.threads


@pytest.mark.parametrize("inference", [True, False])
def test_threads_have_the_settings_of_the_caller_and_one_core_each(inference):
    function = Recorder()
    with torch.inference_mode(inference), using("plain"):
        apply_to_one(function, torch.rand(50, 1))
    assert function.settings == {(1, inference, "plain")}
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("count", [0, 1, 7])
def test_small_batches_are_not_divided(count):
    images, function = torch.rand(count, 1), Recorder()
    assert apply_to_one(function, images).shape == images.shape
    assert (function.sizes, function.threads) == ([count], {threading.current_thread().name})


def test_no_threads_are_used_where_there_is_one_core_or_very_many(monkeypatch):
    for threads in (1, 2):
        monkeypatch.setattr(image_threads, "MAX_THREADS", 1)
        torch.set_num_threads(threads)
        function = Recorder()
        apply_to_one(function, torch.rand(50, 1))
        assert function.sizes == [50]


def test_an_error_in_a_thread_is_raised_and_the_settings_are_restored():
    def fail(images):
        raise ValueError(f"cannot read {len(images)} images")

    with pytest.raises(ValueError, match="cannot read"):
        apply_to_one(fail, torch.rand(50, 1))
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
        logits = apply_to_one(net, image.expand(83, -1, -1, -1))
        assert torch.equal(logits, logits[:1].expand_as(logits))
        torch.testing.assert_close(logits[:1], net(image))


def test_batches_of_all_sizes_keep_their_order():
    images = torch.arange(400).reshape(400, 1)
    batches = images.split([50, 1, 90, 90, 0, 3, 100, 66])
    results = list(apply_in_threads(Recorder(), batches))
    assert [len(result) for result in results] == [len(batch) for batch in batches]
    assert torch.equal(torch.cat(results), 2 * images)
    assert torch.get_num_threads() == 2


def test_the_next_batch_begins_before_the_one_before_it_has_ended():
    second_has_begun = threading.Event()

    def function(images):
        if images[0] == 1:
            second_has_begun.set()
        if images[0] == 0:
            assert second_has_begun.wait(timeout=60)
        return images

    first, second = torch.full((64, 1), -1.0), torch.ones(64, 1)
    first[0] = 0  # one part waits for the second batch, all others end at once
    assert torch.equal(torch.cat([*apply_in_threads(function, [first, second])]), torch.cat([first, second]))


def test_no_more_than_two_batches_are_read_ahead():
    taken = []

    def batches():
        for number in range(5):
            taken.append(number)
            yield torch.full((50, 1), number)

    for number, result in enumerate(apply_in_threads(Recorder(), batches())):
        assert result.unique().tolist() == [2 * number]
        assert len(taken) <= number + 2


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_an_error_in_any_batch_ends_all_of_them(failing):
    def fail(images):
        if images[0] == failing:
            raise ValueError("cannot read batch")
        return images

    with pytest.raises(ValueError, match="cannot read batch"):
        list(apply_in_threads(fail, [torch.full((50, 1), number) for number in range(3)]))
    assert torch.get_num_threads() == 2


def test_an_error_of_the_batches_and_an_early_end_restore_the_settings():
    def batches():
        yield torch.zeros(50, 1)
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        list(apply_in_threads(Recorder(), batches()))
    assert torch.get_num_threads() == 2
    results = apply_in_threads(Recorder(), torch.rand(200, 1).split(50))
    next(results)
    assert torch.get_num_threads() == 1
    results.close()
    assert torch.get_num_threads() == 2
