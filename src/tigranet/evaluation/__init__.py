"""What a trained network is worth."""

from tigranet.evaluation.accuracy import Accuracy, accuracy, moved_accuracy, predict
from tigranet.evaluation.robustness import Robustness, measure

__all__ = ["Accuracy", "Robustness", "accuracy", "measure", "moved_accuracy", "predict"]
