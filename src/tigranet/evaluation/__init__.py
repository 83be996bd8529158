"""What a trained network is worth."""

from tigranet.evaluation.accuracy import Accuracy, accuracy, moved_accuracy, predict

__all__ = ["Accuracy", "accuracy", "moved_accuracy", "predict"]
