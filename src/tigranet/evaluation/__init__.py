"""What a trained network is worth."""

from tigranet.evaluation.accuracy import Accuracy, accuracy, predict, rotated_accuracy

__all__ = ["Accuracy", "accuracy", "predict", "rotated_accuracy"]
