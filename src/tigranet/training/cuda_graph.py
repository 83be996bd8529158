"""Training on one NVIDIA GPU, where starting a kernel takes longer than running it: a step as one CUDA graph."""

import logging
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from tigranet.training.lightning_module import ClassifierModule

log = logging.getLogger(__name__)

WARM_UP = 3
"""Steps that are taken one operation after the other before one is recorded, as PyTorch wants it."""


class CudaGraphClassifierModule(ClassifierModule):
    """The same training, but a step (batch, jitter, forward, backward) is recorded once and then replayed whole.

    The optimiser and the rate stay outside, as both change from step to step. A batch of another size, the last one of
    an epoch, is trained with as usual; so are all if the network cannot be recorded, because it looks at its numbers.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.steps = 0
        self.recording = False
        """Whether steps of a whole batch are to be recorded, or are."""
        self.graph: torch.cuda.CUDAGraph | None = None
        self.chosen = self.loss = torch.empty(0)
        self.gradients: list[Tensor | None] = []

    def on_fit_start(self) -> None:
        super().on_fit_start()
        self.recording = self.images.labels.device == self.device  # a step that waits for the host cannot be

    def training_step(self, number: int) -> Tensor:
        chosen = self.batches[number]
        whole = self.recording and len(chosen) == self.recipe.batch_size
        if whole and self.graph is None and self.steps >= WARM_UP:
            self._record(chosen)
        if whole and self.graph is not None:
            self.chosen.copy_(chosen)
            self.graph.replay()
            for parameter, gradient in zip(self.module.parameters(), self.gradients, strict=True):
                parameter.grad = gradient
            loss = self.loss
        else:
            loss = self._at_once(chosen)
        self.steps += whole
        self.count_in(loss, number)
        return loss

    def _at_once(self, chosen: Tensor) -> Tensor:
        """The loss, and its gradients in the parameters, in the stream that is recorded later on."""
        stream = self._stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self.module.zero_grad()
            loss = self.loss_of(chosen)
            loss.backward()
        torch.cuda.current_stream().wait_stream(stream)
        return loss.detach()

    def _record(self, chosen: Tensor) -> None:
        graph, self.chosen = torch.cuda.CUDAGraph(), chosen.clone()
        random = torch.cuda.default_generators[chosen.device.index]
        state = random.clone_state()
        self.module.zero_grad()
        try:
            with torch.cuda.graph(graph, stream=self._stream()):
                loss = self.loss_of(self.chosen)
                loss.backward()
        except RuntimeError as error:
            log.info("a step cannot be recorded as a CUDA graph: %s", str(error).splitlines()[0])
            self.recording = False
            random.graphsafe_set_state(state)  # the other one still waits for a graph
            return
        self.graph, self.loss = graph, loss.detach()
        self.gradients = [parameter.grad for parameter in self.module.parameters()]

    def _stream(self) -> torch.cuda.Stream:
        if not hasattr(self, "stream"):
            self.stream = torch.cuda.Stream(self.device)
        return self.stream

    def backward(self, loss: Tensor, *_: Any) -> None:
        """Done already, with the loss."""

    def optimizer_zero_grad(self, epoch: int, batch: int, optimizer: Optimizer) -> None:
        """Lightning would forget the gradients between the loss and the optimiser's step."""

    def on_fit_end(self) -> None:
        self.graph, self.gradients = None, []  # and the memory that they hold
