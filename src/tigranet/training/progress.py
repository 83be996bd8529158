"""A progress bar for training: epochs, loss, validation accuracy and remaining time in one line."""

from time import perf_counter
from typing import Any

import lightning as L
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from tigranet.training.duration import describe_duration

WARM_UP_STEPS = 2
"""Number of first steps that are not timed, because kernels are compiled in them."""
TIMED_STEPS, TIMED_SECONDS = 10, 10.0
"""The duration is estimated after this many steps and, if there are validation images, one validation; at the latest
after this many seconds."""
LONG_TRAINING = 60.0
"""Expected duration in seconds above which the user is told how to get a faster answer."""


class FitProgress(L.Callback):
    """Draw a progress bar over all steps of all epochs, with the loss and the validation accuracy.

    After the first steps the expected duration of the training is printed.

    Args:
        console: The console to draw on.
        announce: Whether to print the expected duration.
    """

    def __init__(self, console: Console, announce: bool = True) -> None:
        self.bar = Progress(
            TextColumn("epoch {task.fields[epoch]}"),
            BarColumn(bar_width=20),
            TextColumn("loss {task.fields[loss]}  validation {task.fields[accuracy]} "),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=console,
        )
        self.task = TaskID(0)
        self.steps, self.last_step = 0, 0
        self.begin, self.start = 0.0, 0.0
        """When the training began, and when the first timed step did."""
        self.has_validated, self.has_estimate = False, not announce

    def on_train_start(self, trainer: L.Trainer, *_: Any) -> None:
        """Start the bar at the current step, which is not 0 when training is resumed.

        Args:
            trainer: The trainer that runs.
        """
        self.task = self.bar.add_task(
            "",
            total=int(trainer.estimated_stepping_batches),
            completed=trainer.global_step,
            epoch=f"{trainer.current_epoch}/{trainer.max_epochs}",
            loss="-",
            accuracy="-",
        )
        self.bar.start()
        self.begin = perf_counter()
        self.has_validated = not trainer.enable_validation

    def on_train_batch_end(self, trainer: L.Trainer, *_: Any) -> None:
        """Advance the bar by one step, and print the expected duration when it is known.

        Args:
            trainer: The trainer that runs.
        """
        if trainer.global_step == self.last_step:  # a part of a batch
            return
        self.last_step = trainer.global_step
        self.bar.update(self.task, completed=trainer.global_step)
        self.steps += 1
        if self.steps <= WARM_UP_STEPS:
            self.start = perf_counter()
            return
        timed, seconds = self.steps - WARM_UP_STEPS, perf_counter() - self.start
        is_timed = (timed >= TIMED_STEPS and self.has_validated) or seconds >= TIMED_SECONDS
        if is_timed and not self.has_estimate:
            self.has_estimate = True
            remaining = seconds / timed * (int(trainer.estimated_stepping_batches) - trainer.global_step)
            self._print_duration(perf_counter() - self.begin + remaining)

    def on_validation_end(self, *_: Any) -> None:
        """Remember that the time includes a validation."""
        self.has_validated = True

    def _print_duration(self, seconds: float) -> None:
        hint = "; --quick gives a first model in seconds, and smaller values of --epochs or --size are faster"
        self.bar.console.print(
            f"expected duration: {describe_duration(seconds)}{hint if seconds >= LONG_TRAINING else ''}",
            soft_wrap=True,
        )

    def on_train_epoch_end(self, trainer: L.Trainer, *_: Any) -> None:
        """Show the number of epochs, the loss and the validation accuracy.

        Args:
            trainer: The trainer that runs.
        """
        metrics = trainer.callback_metrics
        accuracy = f"{100 * float(metrics['validation_accuracy']):.1f} %" if "validation_accuracy" in metrics else "-"
        epoch = f"{trainer.current_epoch + 1}/{trainer.max_epochs}"
        self.bar.update(self.task, epoch=epoch, loss=f"{float(metrics['loss']):.4f}", accuracy=accuracy)

    def on_train_end(self, *_: Any) -> None:
        """Stop drawing."""
        self.bar.stop()

    def on_exception(self, *_: Any) -> None:
        """Stop drawing when training fails or is interrupted."""
        self.bar.stop()
