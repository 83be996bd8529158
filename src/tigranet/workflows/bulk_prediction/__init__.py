"""Predictions for more images than one process handles: in parts, by several workers, restartable after a kill.

``source`` divides images into parts, ``plan`` records them, ``part_predictor`` predicts one part and writes its answers
to one Parquet file, ``local_engine`` and ``ray_engine`` run parts, and ``workflow`` puts them together.
"""

from tigranet.workflows.bulk_prediction.workflow import BulkPrediction, predict_source

__all__ = ["BulkPrediction", "predict_source"]
