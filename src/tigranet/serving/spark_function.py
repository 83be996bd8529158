"""A saved network as the function that Spark's ``predict_batch_udf`` asks for."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tigranet.serving.predictor import Predictor

ANSWER_COLUMNS = "label string, probability float, error string"
"""Columns of the answers, as Spark writes a schema."""


def make_predict_fn(model: str, **options: Any) -> Callable[[], Callable[[np.ndarray], dict[str, np.ndarray]]]:
    """Return what Spark's ``predict_batch_udf`` takes: a function that gives the predictor to a worker process.

    The function of the worker takes a column with the content of image files, and returns the columns of
    :data:`ANSWER_COLUMNS`. An image that cannot be used has no label, and the reason in ``error``; the job goes on. A
    worker loads the network when it first needs it. Spark itself is not imported.

    Args:
        model: The folder of a saved model, which all workers can read, or the name of a model that comes with the
            package.
        **options: Arguments of :class:`~tigranet.serving.Predictor`.

    Returns:
        A function without arguments, which can be pickled.

    Raises:
        ValueError: If an option is not valid.

    Example:
        >>> predict = make_predict_fn("oriented-mnist-012", device="cpu")()
        >>> answer = predict(np.array([b"not an image", None], dtype=object))
        >>> answer["label"].tolist(), answer["error"].tolist()[1]
        ([None, None], 'there is no image')
    """
    predictor = Predictor(model, **{"on_error": "column", **options})  # Wrong arguments fail here, not in a worker.
    return partial(partial, _predict, predictor)


def _predict(predictor: Predictor, contents: np.ndarray) -> dict[str, np.ndarray]:
    images = [None if content is None else bytes(content) for content in contents]
    answer = predictor({"image": images})
    return {name.split()[0]: answer[name.split()[0]] for name in ANSWER_COLUMNS.split(", ")}
