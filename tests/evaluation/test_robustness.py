import json

import pytest

from tigranet import TIGraNet
from tigranet.data import ROTATED, Isometry
from tigranet.evaluation import accuracy, measure_robustness, moved_accuracy


def test_it_is_the_accuracies_and_what_is_lost(trained, mnist_012):
    found = measure_robustness(trained, mnist_012, seed=3)
    assert found.images == 100
    assert found.upright == accuracy(trained, mnist_012.test)
    assert found.drop("turned by 90 degrees") == 0
    assert found.moved["rotated"] == moved_accuracy(trained, mnist_012.test, ROTATED, seed=3)
    assert found.moved["shifted by up to 3 pixels"] == moved_accuracy(
        trained, mnist_012.test, Isometry(max_shift=3), seed=3
    )
    assert found.drop("rotated") == found.upright - found.moved["rotated"].mean
    written = json.loads(json.dumps(found.to_json()))
    assert written["moved"]["rotated"]["drop"] == pytest.approx(found.drop("rotated"))


def test_a_model_of_other_data_is_refused(mnist_012):
    with pytest.raises(ValueError, match="the model has 9 classes and reads 1 channels, mnist-012 has 3 and 1"):
        measure_robustness(TIGraNet("SC[1,1]-S[1]", num_classes=9), mnist_012)
