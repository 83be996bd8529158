import inspect
import pickle

import numpy as np
import pytest

from bulk_sources import BAD, contents, save_model
from tigranet.serving import make_predict_fn
from tigranet.serving.spark_function import ANSWER_COLUMNS


def test_it_is_what_predict_batch_udf_expects(tmp_path):
    """Spark pickles it, calls it without arguments, and counts the parameters of the result."""
    make = pickle.loads(pickle.dumps(make_predict_fn(str(save_model(tmp_path / "m")), device="cpu")))
    predict = make()
    assert len(inspect.signature(predict).parameters) == 1
    column = np.array([bytearray(content) for content in contents(5).values()], dtype=object)
    answer = predict(column)
    assert list(answer) == [column.split()[0] for column in ANSWER_COLUMNS.split(", ")]
    assert all(values.shape == (5,) for values in answer.values())
    assert [label is None for label in answer["label"]] == [number == BAD for number in range(5)]


def test_wrong_options_fail_before_the_job():
    with pytest.raises(ValueError, match="-1"):
        make_predict_fn("oriented-mnist-012", batch_size=-1)
