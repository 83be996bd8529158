"""Evaluation of trained networks: predictions, accuracy, robustness, reports and speed. Nothing here trains."""

from tigranet.evaluation.accuracy import Accuracy, accuracy, moved_accuracy, predict
from tigranet.evaluation.file_predictions import UNKNOWN, Prediction, feature_names, file_features, predict_files
from tigranet.evaluation.robustness import Robustness, measure_robustness

__all__ = [
    "UNKNOWN",
    "Accuracy",
    "Prediction",
    "Robustness",
    "accuracy",
    "feature_names",
    "file_features",
    "measure_robustness",
    "moved_accuracy",
    "predict",
    "predict_files",
]
