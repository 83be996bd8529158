"""The common interface of methods that tell images of unknown classes from images of known classes."""

from abc import ABC, abstractmethod

from jaxtyping import Float
from torch import Tensor

from tigranet.evaluation.unknown.representation import KnownImages, Representation


class Detector(ABC):
    """A method that gives every image a score: the higher, the less it resembles the images of known classes."""

    @classmethod
    @abstractmethod
    def fit(cls, known: KnownImages, validation: Representation) -> "Detector":
        """Learn what images of known classes look like.

        Args:
            known: The training images.
            validation: Images of known classes that the network was not trained on. Detectors that weigh several scores
                measure on them how much each varies.

        Returns:
            The detector.
        """

    @abstractmethod
    def scores(self, images: Representation) -> Float[Tensor, " count"]:
        """Return a score for each image.

        Args:
            images: The images.

        Returns:
            The scores, in double precision on the CPU.
        """
