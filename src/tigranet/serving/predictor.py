"""A saved network as a function from images in memory to labels, for pipelines, worker processes and servers."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.choices import InferencePrecision
from tigranet.data.batch_size import limit_batch_size
from tigranet.data.image_errors import UnreadableImageError
from tigranet.data.pillow_pixels import MAX_PIXELS
from tigranet.devices import select_device
from tigranet.evaluation.batched_inference import apply_in_batches, require_finite
from tigranet.evaluation.file_predictions import BATCH_SIZE, check_reject, kernels_for_pixels
from tigranet.evaluation.unknown.novelty import logits_and_novelty
from tigranet.model import TIGraNet
from tigranet.model_limits import check_choice
from tigranet.serving.answer import Answer, answer_of
from tigranet.serving.answers_with_errors import answers_with_errors
from tigranet.serving.explanation import ImageExplanation, explain_image
from tigranet.serving.image_input import ImageInput, RotatedImage, prepare_image, prepare_rotated_image
from tigranet.workflows.unknown_detection import AUTO, load_unknown_images, parse_unknown

_ARGUMENTS = ("model", "device", "batch_size", "reject", "unknown", "on_error", "precision")
"""Attributes that are pickled."""


class _LoadedModel(NamedTuple):
    """What a predictor loads when it is first used."""

    network: TIGraNet
    rows: Callable[[Tensor], Tensor]
    """From a batch of images to their logits, followed by the novelty if unknown images are detected."""
    detects_unknown: bool


class Predictor:
    """A picklable function from images in memory to labels and probabilities.

    The answers are those of ``tigranet predict`` for files with the same pixels. If the model has a detector of unknown
    images, square images are brought to a canonical rotation before they are resized, so that an image and its quarter
    turns have exactly the same answer. Pickling a predictor stores only its arguments, so it can be sent to worker
    processes; each process loads the network when it first needs it.

    Args:
        model: The folder of a saved model, or the name of a model that comes with the package.
        device: Where to compute, see :func:`tigranet.devices.select_device`.
        batch_size: Largest batch size; large images are computed in smaller batches.
        reject: Below this probability the label is 'unknown'.
        unknown: The share of images of known classes to accept, such as 0.95; images that resemble the known classes
            less are 'unknown'. ``auto`` accepts 0.95 if the model has a detector of unknown images, and ``off`` does
            not use the detector.
        on_error: What a call does with a batch in which an image cannot be used. ``raise`` raises an error, and
            ``column`` adds an array ``error`` to the answer, with the reason for each such image.
        precision: Precision of the graph layers, see :meth:`tigranet.TIGraNet.compute_in`.

    Attributes:
        model: The folder, as an absolute path, or the name.
        batch_size: Largest batch size.
        reject: The probability below which the label is 'unknown'.
        unknown: The share of images of known classes to accept, ``auto`` or ``off``.
        on_error: ``raise`` or ``column``.
        precision: Precision of the graph layers.

    Raises:
        ValueError: If ``reject`` is not a probability, if ``batch_size`` is not positive, if ``unknown`` is neither a
            share nor ``auto`` nor ``off``, or if ``on_error`` is something else.

    Example:
        >>> predict = Predictor("oriented-mnist-012", device="cpu")
        >>> answer = predict({"image": np.zeros((2, 28, 28), np.uint8), "path": ["a.png", "b.png"]})
        >>> answer["path"], answer["label"].shape, answer["probability"].shape, answer["probabilities"].shape
        (['a.png', 'b.png'], (2,), (2,), (2, 3))
    """

    def __init__(
        self,
        model: str | Path,
        *,
        device: str = "auto",
        batch_size: int = BATCH_SIZE,
        reject: float = 0.0,
        unknown: str | float = AUTO,
        on_error: Literal["raise", "column"] = "raise",
        precision: InferencePrecision = "32",
    ) -> None:
        check_reject(reject)
        parse_unknown(unknown)
        if on_error not in ("raise", "column"):
            raise ValueError(f"expected on_error to be 'raise' or 'column', got {on_error!r}")
        check_choice("precision", precision, InferencePrecision)
        if batch_size < 1:
            raise ValueError(f"expected a batch size of at least 1, got {batch_size}")
        # A worker process may have another working directory.
        self.model = str(Path(model).resolve()) if Path(model).is_dir() else str(model)
        self.device, self.batch_size, self.reject, self.unknown = device, batch_size, reject, unknown
        self.on_error, self.precision = on_error, precision
        self.__setstate__(self.__getstate__())

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _ARGUMENTS}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._loaded: _LoadedModel | None = None
        self._loading = threading.Lock()
        self._total_pixels: int | None = 0

    @property
    def network(self) -> TIGraNet:
        """The network, which is loaded when it is first needed.

        Raises:
            FileNotFoundError: If there is no such model.
            ValueError: If the files are damaged, if the network has no image size, or if a share of images to accept is
                given and the model has no detector of unknown images.
        """
        return self._load().network

    @property
    def detects_unknown(self) -> bool:
        """Whether images that resemble none of the classes are 'unknown'."""
        return self._load().detects_unknown

    def _load(self) -> _LoadedModel:
        with self._loading:
            if self._loaded is None:
                network = TIGraNet.from_pretrained(self.model)
                if network.image_size is None:
                    raise ValueError(
                        f"'{self.model}' has no image_size, so images cannot be scaled: train it with 'tigranet train'"
                    )
                detection = load_unknown_images(self.model, network, self.unknown)
                network = network.to(select_device(self.device)).compute_in(self.precision)
                rows = network if detection is None else logits_and_novelty(network, detection)
                self._loaded = _LoadedModel(network, rows, detection is not None)
            return self._loaded

    @property
    def image_size(self) -> int:
        """Side length in pixels of the images that the network reads."""
        size = self.network.image_size
        assert size is not None
        return size

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes."""
        return self.network.class_names

    def prepare(self, image: ImageInput, max_pixels: int = MAX_PIXELS) -> Float[Tensor, "channels size size"]:
        """Bring an image to the size, channels and range of values that the network reads.

        Args:
            image: An array of pixels, or the content of an image file, see
                :func:`~tigranet.serving.image_input.prepare_image`.
            max_pixels: Largest number of pixels.

        Returns:
            The image in [0, 1], on the CPU.

        Raises:
            UnreadableImageError: If the image cannot be used.
        """
        if self.detects_unknown:
            return self.prepare_to_explain(image, max_pixels).image
        return prepare_image(image, self.image_size, self.network.in_maps, max_pixels)

    def compute(self, images: Sequence[Float[Tensor, "channels size size"]]) -> Float[Tensor, "count columns"]:
        """Compute the logits of images from :meth:`prepare`, in batches, and their novelty if the model has a detector.

        The first few images are computed in plain PyTorch, as by ``tigranet predict``, because loading the fused
        kernels would take longer.

        Args:
            images: At least one image.

        Returns:
            One row per image, on the CPU: the logits, followed by the novelty if unknown images are detected. Rows may
            hold NaN or infinity if the weights are too large.
        """
        size = limit_batch_size(self.batch_size, self.image_size, self.image_size)
        batches = (torch.stack(list(images[start : start + size])) for start in range(0, len(images), size))
        if self._total_pixels is not None:
            self._total_pixels += len(images) * self.image_size**2
        with kernels_for_pixels(self.network, self._total_pixels):
            return apply_in_batches(self.network, batches, self._load().rows)

    def answer(self, rows: Float[Tensor, "count columns"]) -> Answer:
        """Return the labels and probabilities that rows of numbers stand for.

        Args:
            rows: What :meth:`compute` returns.

        Returns:
            The answer.
        """
        num_classes = self.network.num_classes
        novelty = rows[:, num_classes] if self.detects_unknown else None
        return answer_of(self.class_names, rows[:, :num_classes].softmax(1), novelty, self.reject)

    def prepare_to_explain(self, image: ImageInput, max_pixels: int = MAX_PIXELS) -> RotatedImage:
        """Bring an image to what the network reads, in its canonical rotation, for :meth:`explain_prepared`.

        Args:
            image: An array of pixels, or the content of an image file.
            max_pixels: Largest number of pixels.

        Returns:
            The image, and by how much it was rotated.

        Raises:
            UnreadableImageError: If the image cannot be used.
        """
        return prepare_rotated_image(image, self.image_size, self.network.in_maps, max_pixels)

    def explain_prepared(self, image: RotatedImage, explained_class: str | None = None) -> ImageExplanation:
        """Explain the prediction for an image from :meth:`prepare_to_explain`.

        Args:
            image: The image.
            explained_class: Name of the class to explain. None explains the most probable class.

        Returns:
            The explanation. Numbers may be NaN or infinity if the weights are too large.

        Raises:
            ValueError: If there is no class of this name.
        """
        if self._total_pixels is not None:
            self._total_pixels += self.image_size**2
        with kernels_for_pixels(self.network, self._total_pixels):
            explanation = explain_image(self.network, image, explained_class)
        novelty = self.compute([image.image])[:, -1] if self.detects_unknown else None
        answer = answer_of(self.class_names, explanation.probabilities[None], novelty, self.reject)
        return replace(explanation, label=answer.label[0], unknown=bool(answer.unknown[0]))

    def explain(self, image: ImageInput, explained_class: str | None = None) -> ImageExplanation:
        """Predict the class of one image, with a map of the evidence for it.

        Args:
            image: An array of pixels, or the content of an image file.
            explained_class: Name of the class to explain. None explains the most probable class.

        Returns:
            The explanation, which is that of ``tigranet predict --explain`` up to rounding.

        Raises:
            UnreadableImageError: If the image cannot be used. It is a ``ValueError``.
            ValueError: If there is no class of this name, or if the network gives NaN or infinity.

        Example:
            >>> predict = Predictor("oriented-mnist-012", device="cpu")
            >>> explanation = predict.explain(np.zeros((40, 40), np.uint8))
            >>> explanation.evidence.shape, explanation.explained_class in predict.class_names
            (torch.Size([28, 28]), True)
        """
        explanation = self.explain_prepared(self.prepare_to_explain(image), explained_class)
        require_finite(explanation.probabilities[None])
        return explanation

    def warm_up(self) -> None:
        """Load the network and the fused kernels, and compute one image and one full batch, so that calls are fast."""
        self._total_pixels = None
        blank = torch.zeros(self.network.in_maps, self.image_size, self.image_size)
        for count in (1, limit_batch_size(self.batch_size, self.image_size, self.image_size)):
            self.compute([blank] * count)

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Predict the classes of images.

        Args:
            batch: A mapping with the key ``image``, which holds a batch or one image. A batch is an array (n, H, W) or
                (n, H, W, C), or a list or an object array of images of any sizes. One image is an array (H, W) or
                (H, W, C) with 1, 3 or as many channels as the network reads, or the content of an image file as bytes.

        Returns:
            The other entries of ``batch``, and for a batch the arrays ``label`` (n), ``probability`` (n),
            ``probabilities`` (n, classes) and ``unknown`` (n), which says whether the label is 'unknown'. For one image
            ``label`` is a string, ``probability`` a number and ``unknown`` a bool. With ``on_error="column"`` there is
            also ``error``: None, or the reason why an image has no answer. Its label is then None, and its
            probabilities are NaN.

        Raises:
            ValueError: If an image cannot be used, unless ``on_error`` is ``column``; the message names its position
                in the batch.
            KeyError: If there is no key ``image``.
        """
        if "image" not in batch:
            raise KeyError(f"expected a batch with the key 'image', got the keys {sorted(map(str, batch))}")
        images, is_batch = self._images(batch["image"])
        others = {name: value for name, value in batch.items() if name != "image"}
        arrays = self._arrays(images) if self.on_error == "raise" else self._arrays_with_errors(images)
        if is_batch:
            return others | arrays
        return others | {
            name: value[0] if isinstance(value[0], np.ndarray) else value[:1].tolist()[0]
            for name, value in arrays.items()
        }

    def _arrays(self, images: Sequence[ImageInput]) -> dict[str, np.ndarray]:
        answer = self.answer(self._rows(images))
        return {
            "label": np.array(answer.label, dtype=str),
            "probability": answer.probability,
            "probabilities": answer.probabilities,
            "unknown": answer.unknown,
        }

    def _arrays_with_errors(self, images: Sequence[ImageInput]) -> dict[str, np.ndarray]:
        starts = range(0, max(len(images), 1), self.batch_size)
        batches = [
            answers_with_errors(
                images[start : start + self.batch_size],
                self.prepare,
                self.compute,
                self.answer,
                self.network.num_classes,
            )
            for start in starts
        ]
        return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}

    def _images(self, value: Any) -> tuple[list[ImageInput], bool]:
        """Return the images of a batch, or one image as a list, and whether it is a batch."""
        if isinstance(value, bytes):
            return [value], False
        if isinstance(value, list | tuple):
            return [image if isinstance(image, bytes) else np.asarray(image) for image in value], True
        array = np.asarray(value)
        if array.dtype == object:
            return [image if isinstance(image, bytes) else np.asarray(image) for image in array.ravel()], True
        is_image = array.ndim <= 2 or (array.ndim == 3 and array.shape[2] in (1, 3, self.network.in_maps))
        return ([array], False) if is_image else (list(array), True)

    def _rows(self, images: Sequence[ImageInput]) -> Float[Tensor, "count columns"]:
        batches = [self._batch_rows(images, start) for start in range(0, len(images), self.batch_size)]
        if not batches:
            return torch.zeros(0, self.network.num_classes + self.detects_unknown)
        return require_finite(torch.cat(batches))

    def _batch_rows(self, images: Sequence[ImageInput], start: int) -> Tensor:
        stop = min(start + self.batch_size, len(images))
        return self.compute(list(self._prepared(images, range(start, stop))))

    def _prepared(self, images: Sequence[ImageInput], positions: range) -> Iterator[Tensor]:
        for position in positions:
            try:
                yield self.prepare(images[position])
            except UnreadableImageError as error:
                where = f"image {position} of {len(images)}" if len(images) > 1 else "the image"
                raise ValueError(f"{where} {error}") from None
