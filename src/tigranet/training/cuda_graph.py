"""Training on one NVIDIA GPU with each step recorded as a CUDA graph.

In small networks, launching a kernel takes longer than running it. A graph launches all kernels of a step at once.
"""

import logging
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.optim import Optimizer

from tigranet.training.lightning_module import ClassifierModule

log = logging.getLogger(__name__)

WARM_UP_STEPS = 3
"""Number of steps that run without a graph before one is recorded, as PyTorch requires."""


class CudaGraphClassifierModule(ClassifierModule):
    """Train like :class:`ClassifierModule`, with each step recorded once as a CUDA graph and then replayed.

    A graph contains the gathering of the batch, the augmentation, the forward and the backward pass. The optimiser and
    the learning rate stay outside, because both change from step to step. Steps run without a graph when the batch is
    smaller, as the last one of an epoch may be, and when the network cannot be recorded because it reads values back
    to the host.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.full_steps = 0
        """Number of steps with a full batch so far."""
        self.use_graph = False
        """Whether steps with a full batch are recorded and replayed."""
        self.graph: torch.cuda.CUDAGraph | None = None
        self.graph_indices = self.graph_loss = torch.empty(0)
        """The input and the output of the graph."""
        self.graph_gradients: list[Tensor | None] = []

    def on_fit_start(self) -> None:
        """Use graphs only if the images are on the device, because a graph cannot wait for the host."""
        super().on_fit_start()
        self.use_graph = self.training_data.labels.device == self.device

    def training_step(self, index: int) -> Float[Tensor, ""]:
        """Return the loss of one batch, with its gradients already in the parameters.

        Args:
            index: The index of the batch in this epoch.

        Returns:
            The loss.
        """
        indices = self.batches[index]
        graphable = self.use_graph and len(indices) == self.recipe.batch_size
        if graphable and self.graph is None and self.full_steps >= WARM_UP_STEPS:
            self._record(indices)
        if graphable and self.graph is not None:
            self.graph_indices.copy_(indices)
            self.graph.replay()
            for parameter, gradient in zip(self.module.parameters(), self.graph_gradients, strict=True):
                parameter.grad = gradient
            loss = self.graph_loss
        else:
            loss = self._run_eagerly(indices)
        self.full_steps += graphable
        self.record_loss(loss, index)
        return loss

    def _run_eagerly(self, indices: Int[Tensor, " batch"]) -> Float[Tensor, ""]:
        """Compute the loss and the gradients without a graph, on the stream that is later used for recording."""
        stream = self._stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self.module.zero_grad()
            loss = self.batch_loss(indices)
            loss.backward()
        torch.cuda.current_stream().wait_stream(stream)
        return loss.detach()

    def _record(self, indices: Int[Tensor, " batch"]) -> None:
        """Record a step as a graph, or give up graphs for this training if that is not possible."""
        graph, self.graph_indices = torch.cuda.CUDAGraph(), indices.clone()
        generator = torch.cuda.default_generators[indices.device.index]
        state = generator.clone_state()
        self.module.zero_grad()
        try:
            with torch.cuda.graph(graph, stream=self._stream()):
                loss = self.batch_loss(self.graph_indices)
                loss.backward()
        except RuntimeError as error:
            log.info("cannot record a training step as a CUDA graph: %s", str(error).splitlines()[0])
            self.use_graph = False
            generator.graphsafe_set_state(state)  # The current state still belongs to the failed graph.
            return
        self.graph, self.graph_loss = graph, loss.detach()
        self.graph_gradients = [parameter.grad for parameter in self.module.parameters()]

    def _stream(self) -> torch.cuda.Stream:
        if not hasattr(self, "stream"):
            self.stream = torch.cuda.Stream(self.device)
        return self.stream

    def backward(self, loss: Tensor, *_: Any) -> None:
        """Do nothing, because the training step has already computed the gradients.

        Args:
            loss: Ignored.
        """

    def optimizer_zero_grad(self, epoch: int, batch: int, optimizer: Optimizer) -> None:
        """Do nothing, because Lightning would erase the gradients between the training step and the optimiser.

        Args:
            epoch: Ignored.
            batch: Ignored.
            optimizer: Ignored.
        """

    def on_fit_end(self) -> None:
        """Release the graph and its memory."""
        self.graph, self.graph_gradients = None, []
