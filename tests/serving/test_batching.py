import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from tigranet.serving.batching import Batcher


class Compute:
    """Doubles images, remembers the batch sizes, and waits in the first batch until it is released."""

    def __init__(self, fail_at=None):
        self.sizes, self.fail_at, self.release = [], fail_at, threading.Event()

    def __call__(self, images):
        if not self.sizes:
            self.release.wait(10)
        self.sizes.append(len(images))
        if len(self.sizes) == self.fail_at:
            raise RuntimeError("out of memory")
        return 2 * torch.stack(images)


def run(requests, compute, max_images, cancel=()):
    """Send requests of several images while the first one is computed. Return results or errors, in order."""

    async def all_requests():
        with ThreadPoolExecutor(1) as executor:
            batcher = Batcher(compute, executor, max_images)
            tasks = []
            for images in requests:
                tasks.append(asyncio.create_task(batcher(images)))
                await asyncio.sleep(0)
            for number in cancel:
                tasks[number].cancel()
            await asyncio.sleep(0)
            compute.release.set()
            return await asyncio.gather(*tasks, return_exceptions=True)

    return asyncio.run(all_requests())


def images(*values):
    return [torch.tensor([float(value)]) for value in values]


def test_requests_that_wait_are_computed_together_and_each_gets_its_rows():
    compute = Compute()
    requests = [images(1), images(2, 3), images(4), images(5, 6, 7)]
    results = run(requests, compute, max_images=100)
    assert [result.flatten().tolist() for result in results] == [[2], [4, 6], [8], [10, 12, 14]]
    assert compute.sizes == [1, 6]


def test_a_batch_has_at_most_its_number_of_images_unless_one_request_has_more():
    compute = Compute()
    results = run([images(0), images(1, 2), images(3, 4), images(*range(9)), images(5)], compute, max_images=4)
    assert compute.sizes == [1, 4, 9, 1]
    assert results[3].flatten().tolist() == [2 * value for value in range(9)]


def test_an_error_reaches_the_requests_of_its_batch_only():
    compute = Compute(fail_at=2)
    first, second, third, fourth = run([images(1), images(2), images(3), images(4)], compute, max_images=2)
    assert first.tolist() == [[2]]
    for failed in (second, third):
        assert isinstance(failed, RuntimeError)
    assert fourth.tolist() == [[8]]


def test_requests_that_were_cancelled_while_waiting_are_not_computed():
    compute = Compute()
    results = run([images(1), images(2), images(3)], compute, max_images=10, cancel=[1])
    assert isinstance(results[1], asyncio.CancelledError)
    assert results[2].tolist() == [[6]]
    assert compute.sizes == [1, 1]


def test_the_batcher_works_again_after_it_was_idle():
    compute = Compute()
    compute.release.set()
    counts = []

    async def two_rounds():
        with ThreadPoolExecutor(1) as executor:
            batcher = Batcher(compute, executor, 8, counts.append)
            return [(await batcher(images(value))).item() for value in (1, 2)]

    assert asyncio.run(two_rounds()) == [2, 4]
    assert counts == [1, 1]


@pytest.mark.parametrize("count", [1, 50])
def test_many_requests_keep_their_answers(count):
    compute = Compute()
    results = run([images(value) for value in range(count)], compute, max_images=7)
    assert [result.item() for result in results] == [2 * value for value in range(count)]
    assert max(compute.sizes) <= 7
