from dataclasses import replace

import pytest
import torch

from tigranet import TIGraNet
from tigranet.data import LabelledImages
from tigranet.evaluation import accuracy
from tigranet.workflows.first_answer import Comparison, compare_with, draw_images, first_answer

LAYERS = "SC[3,3]-S[4]"


def test_the_answer_is_a_network_that_does_not_change_under_quarter_turns(small):
    before = torch.get_rng_state()
    answer = first_answer(small)
    assert torch.equal(torch.get_rng_state(), before)
    assert answer.accuracy > 50  # three digits
    assert answer.images == 30
    assert answer.standard_error == pytest.approx((answer.accuracy * (100 - answer.accuracy) / 30) ** 0.5)
    assert "5-fold cross-validation of 30 training images" in str(answer)
    images = small.test.images
    with torch.no_grad():
        torch.testing.assert_close(
            answer.network(images.rot90(1, (2, 3))), answer.network(images), atol=1e-3, rtol=1e-3
        )
    assert accuracy(answer.network, small.train) >= answer.accuracy  # it was fitted to these images
    assert answer.to_json().keys() == {
        "accuracy", "standard_error", "method", "images", "seconds", "architecture",
    }  # fmt: skip
    same = first_answer(small)
    assert torch.equal(same.network(images), answer.network(images))
    assert not torch.equal(first_answer(small, seed=1).network(images), answer.network(images))


def test_features_of_a_saved_network_are_used(small):
    answer = first_answer(small, network="paper-mnist-012")
    shipped = TIGraNet.from_pretrained("paper-mnist-012")
    images = small.test.images
    torch.testing.assert_close(answer.network.features(images), shipped.features(images))
    assert len(answer.network.classifier) == 1
    assert answer.network.class_names == small.class_names


def test_groups_are_measured_on_validation_images(small):
    answer = first_answer(small, network=LAYERS, grouped=True)
    assert answer.method == "30 validation images"
    assert answer.accuracy == pytest.approx(accuracy(answer.network, small.validation))


def test_too_few_images_to_measure(small):
    single = small.train.take([int((small.train.labels == label).nonzero()[0]) for label in range(3)])
    answer = first_answer(replace(small, train=single, validation=single.take([])), network=LAYERS)
    assert (answer.accuracy, answer.standard_error, answer.images) == (None, None, 0)
    assert "too few" in str(answer)
    assert first_answer(replace(small, train=single), network=LAYERS).images == 30  # validation images


def test_many_images_are_drawn_with_every_class():
    labels = torch.cat([torch.zeros(100), torch.ones(1), torch.full((3,), 2)]).long()
    images = LabelledImages(torch.rand(104, 1, 2, 2), labels)
    drawn = draw_images(images, 10, seed=0)
    assert 10 <= len(drawn.labels) <= 16
    assert drawn.labels.bincount()[1:].tolist() in ([1, 2], [1, 3])
    assert draw_images(images, None, 0) is images
    assert draw_images(images, 104, 0) is images


def test_the_comparison_is_on_the_same_images(small):
    answer = first_answer(small, network=LAYERS)
    comparison = compare_with(answer, answer.network, small)
    assert comparison.trained == comparison.first == accuracy(answer.network, small.test)
    assert (comparison.part, comparison.images) == ("test", 30)
    without_test = replace(small, test=small.test.take([]))
    assert compare_with(answer, answer.network, without_test).part == "validation"
    assert compare_with(answer, answer.network, replace(without_test, validation=small.test.take([]))) is None


@pytest.mark.parametrize(
    ("accuracies", "verdict"), [((90, 80), "beats"), ((80, 80), "equals"), ((70, 80), "does not beat")]
)
def test_the_comparison_says_who_is_better(accuracies, verdict):
    text = str(Comparison(*accuracies, 48, "test"))
    assert verdict in text
    assert "48 test images" in text
    assert ("--quick" in text) == (verdict == "does not beat")


def test_wrong_networks_are_errors(small):
    with pytest.raises(FileNotFoundError, match="no/such"):
        first_answer(small, network="./no/such/folder")
    with pytest.raises(ValueError, match="preset"):
        first_answer(small, network="no-such-preset")
