import pytest
import torch

from tigranet.evaluation.prediction_detail import NO_DETAIL, Detail

NAMES = ("a", "b", "c")
LOGITS = torch.tensor([1.0, 3.0, 2.0])


def test_the_top_classes_are_ordered_by_probability():
    (first, second) = Detail(top=2).fields(NAMES, LOGITS)["top"]
    assert (first.label, second.label) == ("b", "c")
    assert first.probability == pytest.approx(float(LOGITS.softmax(0)[1]), abs=1e-6)


def test_there_are_not_more_top_classes_than_classes():
    assert [ranked.label for ranked in Detail(top=10).fields(NAMES, LOGITS)["top"]] == ["b", "c", "a"]


def test_probabilities_are_those_of_all_classes_by_name():
    probabilities = Detail(probabilities=True).fields(NAMES, LOGITS)["probabilities"]
    assert list(probabilities) == list(NAMES)
    assert sum(probabilities.values()) == pytest.approx(1, abs=1e-5)


def test_without_details_there_are_no_fields_and_a_negative_number_is_an_error():
    assert NO_DETAIL.fields(NAMES, LOGITS) == {}
    with pytest.raises(ValueError, match="-1"):
        Detail(top=-1).check()
