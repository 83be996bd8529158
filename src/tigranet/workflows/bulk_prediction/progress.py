"""Show how far a bulk prediction is, and how long it will take."""

from time import perf_counter
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from tigranet.training.duration import describe_duration
from tigranet.workflows.bulk_prediction.part_predictor import PartAnswer
from tigranet.workflows.bulk_prediction.plan import Plan

MIN_TIMED_SECONDS = 5
"""Seconds after the first part after which the expected duration is printed."""


class BulkProgress:
    """A progress bar over the parts. The expected duration is printed once.

    Args:
        plan: The plan.
        resumed_images: Number of images that an earlier call has predicted.
        resumed_parts: Number of parts that an earlier call has finished.
        console: Where to draw, or None.
    """

    def __init__(self, plan: Plan, resumed_images: int, resumed_parts: int, console: Console | None) -> None:
        self.plan, self.console = plan, console
        self.resumed_parts, self.images, self.parts, self.new_images = resumed_parts, resumed_images, resumed_parts, 0
        self.bar = Progress(
            TextColumn("{task.fields[images]} images"),
            BarColumn(bar_width=20),
            TextColumn("part {task.completed}/{task.total}  {task.fields[rate]} "),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=console or Console(quiet=True),
            transient=True,
        )
        self.task = TaskID(0)
        self.start = 0.0
        self.first_finished: float | None = None
        self.has_estimate = False

    def __enter__(self) -> "BulkProgress":
        self.start = perf_counter()
        if self.console and self.resumed_parts:
            self.console.print(
                f"{self.parts:,} of {self.plan.parts:,} parts were finished before, with {self.images:,} images",
                soft_wrap=True,
            )
        self.task = self.bar.add_task("", total=self.plan.parts, completed=self.parts, images=self._count(), rate="")
        if self.console:
            self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.bar.stop()

    def advance(self, answer: PartAnswer) -> None:
        """Show that a part is finished.

        Args:
            answer: What is recorded about it.
        """
        self.images += answer.images
        self.new_images += answer.images
        self.parts += 1
        now = perf_counter()
        seconds = now - self.start
        rate = f"{self.new_images / max(seconds, 1e-9):,.0f} images per second"
        self.bar.update(self.task, completed=self.parts, images=self._count(), rate=rate)
        if self.first_finished is None:  # Until then, workers have loaded modules and the network too.
            self.first_finished = now
        seconds, parts = now - self.first_finished, self.parts - self.resumed_parts - 1
        remaining = self.plan.parts - self.parts
        if self.console and not self.has_estimate and remaining and seconds >= MIN_TIMED_SECONDS:
            self.has_estimate = True
            self.console.print(
                f"expected duration: {describe_duration(seconds / parts * remaining)} more", soft_wrap=True
            )

    def _count(self) -> str:
        return f"{self.images:,}" if self.plan.images is None else f"{self.images:,}/{self.plan.images:,}"
