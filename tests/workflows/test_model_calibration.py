import json

import pytest
import torch
from rich.console import Console

from tigranet import TIGraNet
from tigranet.data import LabelledImages
from tigranet.evaluation.canonical_logits import canonical_logits
from tigranet.evaluation.conformal import ConformalCalibration
from tigranet.pretrained import shipped
from tigranet.workflows.model_calibration import (
    ModelCalibration,
    calibrate_network,
    read_calibration,
    require_calibration,
    write_calibration,
)


@pytest.fixture
def calibrated(model):
    calibration = ModelCalibration(ConformalCalibration(30, tuple(number / 64 for number in range(29))), 1.5)
    network = TIGraNet.from_pretrained(model)
    write_calibration(model, network, calibration)
    return model, network, calibration


def test_it_is_read_as_it_was_written(calibrated):
    model, network, calibration = calibrated
    assert read_calibration(model, network) == calibration
    assert require_calibration(str(model), network, 0.5) == calibration.conformal
    write_calibration(model, network, None)
    assert read_calibration(model, network) is None
    with pytest.raises(ValueError, match="tigranet calibrate"):
        require_calibration(model, network, 0.5)


def test_other_weights_are_not_calibrated(calibrated):
    model, network, _ = calibrated
    network.save_pretrained(model)
    assert read_calibration(model, network) is not None  # the same weights
    with torch.no_grad():
        next(network.parameters()).add_(1)
    network.save_pretrained(model)
    with pytest.raises(ValueError, match=r"calibration\.json.*other weights"):
        read_calibration(model, network)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("score", "margin"),
        ("images", 0),
        ("images", 5),
        ("images", True),
        ("images", 10**9),
        ("scores", None),
        ("scores", [0.5, "a"]),
        ("scores", [-1.0]),
        ("scores", [True]),
        ("scores", [10**400]),
        ("temperature", 0),
        ("temperature", "warm"),
        ("selected_weights", 1),
        ("weights_sha256", "abc"),
    ],
)
def test_wrong_values_are_refused(calibrated, name, value):
    model, network, _ = calibrated
    path = model / "calibration.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {name: value}))
    with pytest.raises(ValueError, match=rf"calibration\.json' is not a calibration.*(expected|{name})"):
        read_calibration(model, network)


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff", b'{"scores": NaN}', b"[" * 10_000])
def test_damaged_files_are_named(calibrated, content):
    model, network, _ = calibrated
    (model / "calibration.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"calibration\.json"):
        read_calibration(model, network)


def test_a_network_is_calibrated_on_images(model):
    network = TIGraNet.from_pretrained(model)
    images = LabelledImages(torch.rand(25, 1, 12, 12), torch.arange(25) % 2)
    calibration = calibrate_network(network, images, selected_weights=True)
    assert calibration.conformal.images == len(calibration.conformal.scores) == 25
    expected = -network(images.images).log_softmax(1)[torch.arange(25), images.labels]
    assert calibration.conformal.scores == pytest.approx(expected.detach().sort().values.tolist(), abs=1e-5)
    assert "calibrated on 25 validation images: label sets of coverage up to 0.962" in calibration.describe()
    assert calibrate_network(network, images.take([])) is None
    rotated = images._replace(images=torch.rot90(images.images, 1, (2, 3)))
    assert calibrate_network(network, rotated, selected_weights=True) == calibration


def test_what_the_user_must_know_is_printed(calibrated, capsys):
    model, network, _ = calibrated
    require_calibration(model, network, 0.9, Console())
    assert capsys.readouterr().out == ""
    require_calibration(model, network, 0.99, Console(width=500))
    assert "needs at least 99 validation images, the model was calibrated on 30" in capsys.readouterr().out
    selected = ModelCalibration(ConformalCalibration(1, (0.5,)), selected_weights=True)
    assert ["--keep last" in notice for notice in selected.notices(0.5)] == [True]
    with pytest.raises(ValueError, match="between 0 and 1"):
        require_calibration(model, network, 2.0)


TRAINED_ON_ALL_IMAGES = {"pyramid-cifar10", "pyramid-plankton"}
"""Networks without validation images: they were trained on all images except the test images."""
STARTS = {"pyramid-small-cifar10"}
"""Networks that trainings start from. Their own classes are of no use."""


@pytest.mark.parametrize("name", sorted(set(shipped()) - TRAINED_ON_ALL_IMAGES - STARTS))
def test_each_network_of_the_package_has_a_calibration_for_coverages_up_to_99_percent(name):
    calibration = read_calibration(name, TIGraNet.from_pretrained(name))
    assert not calibration.selected_weights
    assert calibration.notices(0.99) == []


@pytest.mark.parametrize("name", ["oriented-mnist-012", "paper-mnist-012"])
def test_label_sets_of_a_network_of_the_package_have_the_coverage_asked_for(name, mnist_012):
    """Of 100 test images, with 100 calibration images: three standard deviations of the difference are 0.09."""
    network, test = TIGraNet.from_pretrained(name), mnist_012.test
    calibration = require_calibration(name, network, 0.95)
    with torch.inference_mode():
        upright, turned = (
            calibration.label_sets(canonical_logits(network)(test.images.rot90(turns, (2, 3))), 0.95)
            for turns in (0, 1)
        )
    assert torch.equal(upright, turned)
    assert upright[range(len(test.labels)), test.labels].double().mean() >= 0.86
    assert upright.sum(1).double().mean() < 1.5
