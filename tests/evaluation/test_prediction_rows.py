import json

import pytest

from tigranet.evaluation import Prediction
from tigranet.evaluation.prediction_detail import RankedLabel
from tigranet.evaluation.prediction_rows import column_names, prediction_row

TOP = (RankedLabel("1", 0.75), RankedLabel("label", 0.25))
PREDICTION = Prediction("x.png", "unknown", 0.75, ("1",), top=TOP, probabilities={"label": 0.25, "1": 0.75})


@pytest.mark.parametrize("as_json", [False, True])
def test_a_row_of_a_table_has_a_value_for_each_column(as_json):
    row = prediction_row(PREDICTION, as_json)
    names = column_names(["label", "1"], top=5, probabilities=True, label_sets=True)
    assert len(set(names)) == len(names)
    if as_json:
        assert json.loads(json.dumps(row))["top"][1] == {"label": "label", "probability": 0.25}
        assert row["probabilities"] == {"label": 0.25, "1": 0.75}
    else:
        assert list(row) == names
        assert (row["label"], row["label_1"], row["p_1"], row["p_label"]) == ("unknown", "1", 0.75, 0.25)


def test_without_options_a_row_is_as_before():
    row = prediction_row(Prediction("x.png", "a", 0.5), as_json=False)
    assert list(row) == column_names(["a"], top=0, probabilities=False, label_sets=False)
