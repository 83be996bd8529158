"""One line that shows how far training is, how well it goes, and how long it will take."""

from typing import Any

import lightning as L
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn


class FitProgress(L.Callback):
    """A bar over all steps of all epochs, with the loss and the validation accuracy."""

    def __init__(self, console: Console) -> None:
        self.bar = Progress(
            TextColumn("epoch {task.fields[epoch]}"),
            BarColumn(bar_width=20),
            TextColumn("loss {task.fields[loss]}  validation {task.fields[accuracy]} "),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=console,
        )
        self.task = TaskID(0)

    def on_train_start(self, trainer: L.Trainer, *_: Any) -> None:
        total = int(trainer.estimated_stepping_batches)
        epoch = f"{trainer.current_epoch}/{trainer.max_epochs}"  # not 0 where a training goes on
        self.task = self.bar.add_task(
            "", total=total, completed=trainer.global_step, epoch=epoch, loss="-", accuracy="-"
        )
        self.bar.start()

    def on_train_batch_end(self, *_: Any) -> None:
        self.bar.advance(self.task)

    def on_train_epoch_end(self, trainer: L.Trainer, *_: Any) -> None:
        seen = trainer.callback_metrics
        accuracy = f"{100 * float(seen['validation_accuracy']):.1f} %" if "validation_accuracy" in seen else "-"
        epoch = f"{trainer.current_epoch + 1}/{trainer.max_epochs}"
        self.bar.update(self.task, epoch=epoch, loss=f"{float(seen['loss']):.4f}", accuracy=accuracy)

    def on_train_end(self, *_: Any) -> None:
        self.bar.stop()

    def on_exception(self, *_: Any) -> None:
        self.bar.stop()
