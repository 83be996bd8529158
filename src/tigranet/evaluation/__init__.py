"""What a trained network is worth."""

from tigranet.evaluation.accuracy import Accuracy, accuracy, moved_accuracy, predict
from tigranet.evaluation.answers import UNKNOWN, Answer, answers, statistic_names, statistics
from tigranet.evaluation.robustness import Robustness, measure

__all__ = [
    "UNKNOWN",
    "Accuracy",
    "Answer",
    "Robustness",
    "accuracy",
    "answers",
    "measure",
    "moved_accuracy",
    "predict",
    "statistic_names",
    "statistics",
]
