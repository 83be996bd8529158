"""Serve saved networks: a predictor for arrays and image files in memory, and an HTTP server.

The predictor needs nothing besides the package. The server, ``tigranet serve``, needs the extra ``serve``.
"""

from tigranet.serving.predictor import Predictor
from tigranet.serving.spark_function import make_predict_fn

__all__ = ["Predictor", "make_predict_fn"]
