"""Serve saved networks: a predictor for arrays and image files in memory, and an HTTP server.

The predictor needs nothing besides the package. The server, ``tigranet serve``, needs the extra ``serve``.
"""

from tigranet.serving.predictor import Predictor

__all__ = ["Predictor"]
