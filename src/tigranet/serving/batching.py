"""Dynamic batching: requests that arrive while the network computes are computed together afterwards."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import NamedTuple

from torch import Tensor


class _Request(NamedTuple):
    """Images that wait, and where their results go."""

    images: Sequence[Tensor]
    results: "asyncio.Future[Tensor]"


class Batcher:
    """Collects the images of concurrent requests into batches.

    An idle network starts at once, so a single request does not wait for others. Requests that arrive during a
    computation wait for its end, and then go through the network together. Batches therefore grow with the load.

    Args:
        compute: A function from a list of images to one row per image.
        executor: Where ``compute`` runs. One thread for all models keeps the processor cores from competing.
        max_images: Largest number of images in a batch, unless a single request has more.
        on_batch: Called with the number of images of each batch, for metrics.
    """

    def __init__(
        self,
        compute: Callable[[list[Tensor]], Tensor],
        executor: Executor,
        max_images: int,
        on_batch: Callable[[int], None] = lambda count: None,
    ) -> None:
        self._compute, self._executor, self._max_images, self._on_batch = compute, executor, max_images, on_batch
        self._waiting: deque[_Request] = deque()
        self._worker: asyncio.Task[None] | None = None

    async def __call__(self, images: Sequence[Tensor]) -> Tensor:
        """Compute the rows of images, together with those of other requests.

        Args:
            images: The images of one request.

        Returns:
            One row per image, in order.

        Raises:
            Exception: Whatever ``compute`` raises for the batch.
        """
        request = _Request(images, asyncio.get_running_loop().create_future())
        self._waiting.append(request)
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        return await request.results

    async def _work(self) -> None:
        while batch := self._next_batch():
            images = [image for request in batch for image in request.images]
            self._on_batch(len(images))
            try:
                loop = asyncio.get_running_loop()
                rows = await loop.run_in_executor(self._executor, self._compute, images)
            except Exception as error:
                for request in batch:
                    if not request.results.done():
                        request.results.set_exception(error)
                continue
            start = 0
            for request in batch:
                if not request.results.done():  # the client has gone, or the time is over
                    request.results.set_result(rows[start : start + len(request.images)])
                start += len(request.images)

    def _next_batch(self) -> list[_Request]:
        """Take requests from the queue, at least one if there is one. Cancelled requests are dropped."""
        batch: list[_Request] = []
        count = 0
        while self._waiting and (not batch or count + len(self._waiting[0].images) <= self._max_images):
            request = self._waiting.popleft()
            if not request.results.done():
                batch.append(request)
                count += len(request.images)
        return batch
