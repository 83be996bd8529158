import pytest
import torch

from tigranet.data import LabelledImages
from tigranet.evaluation.answer_examples import AnswerTable

NAMES = ("bolt", "nut")


def table(logits, labels, files=None):
    """Return the answers for images with these logits of the class bolt; those of nut are 0."""
    pairs = torch.tensor([[float(value), 0.0] for value in logits])
    data = LabelledImages(torch.zeros(len(labels), 1, 2, 2), torch.tensor(labels))
    return AnswerTable(data, pairs, NAMES, files)


def test_right_examples_are_the_surest_the_middle_and_the_least_sure_one():
    answers = table([5, 1, 4, 2, 3, -1], [0, 0, 0, 0, 0, 0], [f"{number}.png" for number in range(6)])
    examples = answers.class_examples(0)
    assert [answer.file for answer in examples.right] == ["0.png", "4.png", "1.png"]
    assert [answer.image for answer in examples.wrong] == [5]
    assert (examples.name, examples.wrong_count) == ("bolt", 1)
    assert all(answer.is_right for answer in examples.right)


def test_wrong_examples_are_the_surest_ones():
    examples = table([1, 4, 2, 3], [1, 1, 1, 1]).class_examples(1)
    assert examples.right == ()
    assert [answer.image for answer in examples.wrong] == [1, 3, 2]
    assert examples.wrong_count == 4
    assert examples.wrong[0].answer == "bolt"
    assert examples.wrong[0].truth == examples.wrong[0].second == "nut"


def test_the_least_certain_answers_have_the_smallest_distance_of_two_probabilities():
    answers = table([3, -0.5, 0.1, -2], [0, 0, 1, 1]).least_certain(3)
    assert [answer.image for answer in answers] == [2, 1, 3]
    first = answers[0]
    assert (first.answer, first.second, first.is_right) == ("bolt", "nut", False)
    assert first.probability + first.second_probability == pytest.approx(1)


def test_an_image_without_an_answer_is_wrong_and_not_uncertain():
    answers = table([float("nan"), 1], [0, 0])
    (wrong,) = answers.class_examples(0).wrong
    assert (wrong.answer, wrong.probability, wrong.second) == ("no answer", 0, None)
    assert [answer.image for answer in answers.least_certain()] == [1]


def test_typical_images_are_of_middle_confidence_and_of_the_most_frequent_classes():
    answers = table([5, 1, 3, -1, -2, -3], [0, 0, 0, 1, 1, 1])
    assert answers.typical_images(2) == [2, 4]
    assert answers.typical_images(1) == [2]
    assert len(answers.typical_images(6)) == 6
    few = table([1, 2], [1, 1])  # no image of a bolt
    assert few.typical_images(6) == [1, 0]


def test_one_class_has_no_uncertain_answers():
    data = LabelledImages(torch.zeros(2, 1, 2, 2), torch.zeros(2, dtype=torch.int64))
    answers = AnswerTable(data, torch.zeros(2, 1), ("bolt",))
    assert answers.least_certain() == ()
    assert answers.answer(0).second is None
