from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tigranet import TIGraNet
from tigranet.data import UnreadableFile
from tigranet.evaluation import Prediction, file_features, predict_files
from tigranet.evaluation.file_predictions import MAX_PLAIN_PIXELS, feature_names
from tigranet.ops.mode import kernel_mode, using


@pytest.fixture
def net():
    torch.manual_seed(0)
    return TIGraNet("SC[2,2]-S[2]", 2, class_names=["bolt", "nut"], image_size=10).eval()


def write_images(folder, count, mode="L"):
    shape = (10, 10) if mode == "L" else (10, 10, 3)
    for number in range(count):
        pixels = np.random.default_rng(number).integers(0, 256, shape, dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number:02d}.png")
    return sorted(folder.glob("*.png"))


def read_images(paths):
    return torch.stack([torch.from_numpy(np.asarray(Image.open(path)).copy()) for path in paths]).unsqueeze(1) / 255


def test_each_file_has_the_prediction_of_the_network(net, tmp_path):
    paths = write_images(tmp_path, 7)
    probabilities, labels = net(read_images(paths)).detach().softmax(1).max(1)
    predictions = list(predict_files(net, paths, batch_size=3))
    assert [prediction.path for prediction in predictions] == [str(path) for path in paths]
    assert [prediction.label for prediction in predictions] == [("bolt", "nut")[label] for label in labels]
    assert [prediction.probability for prediction in predictions] == pytest.approx(probabilities.tolist(), abs=1e-5)


def test_each_file_has_the_features_of_the_network(net, tmp_path):
    paths = write_images(tmp_path, 5)
    expected = net.features(read_images(paths)).detach()
    results = list(file_features(net, paths, batch_size=2))
    assert [path for path, _ in results] == paths
    torch.testing.assert_close(torch.stack([features for _, features in results]), expected)


def test_rotated_files_have_the_same_predictions(net, tmp_path):
    paths = write_images(tmp_path, 4)
    before = list(predict_files(net, paths))
    for path in paths:
        Image.open(path).transpose(Image.Transpose.ROTATE_90).save(path)
    for actual, expected in zip(predict_files(net, paths), before, strict=True):
        assert actual.label == expected.label
        assert actual.probability == pytest.approx(expected.probability, abs=1e-5)


def test_a_prediction_of_low_probability_is_unknown(net, tmp_path):
    paths = write_images(tmp_path, 3)
    assert {prediction.label for prediction in predict_files(net, paths, reject=1.0)} == {"unknown"}
    with pytest.raises(ValueError, match=r"reject .*\[0, 1\], got 2"):
        next(predict_files(net, paths, reject=2.0))


def test_unreadable_files_do_not_stop_the_rest(net, tmp_path):
    paths = write_images(tmp_path, 5)
    paths[1].write_bytes(b"")
    paths[4].write_bytes(b"nothing")
    results = list(predict_files(net, [*paths, tmp_path / "none.png"], batch_size=2))
    assert [type(result) for result in results] == [
        Prediction,
        UnreadableFile,
        Prediction,
        Prediction,
        UnreadableFile,
        UnreadableFile,
    ]


@pytest.fixture
def overflowing(net, tmp_path):
    """A network whose numbers overflow for all but black images, five images, and the positions of the black ones."""
    paths = write_images(tmp_path, 5)
    for position in (1, 4):
        Image.new("L", (10, 10)).save(paths[position])
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.fill_(1e30)
    return net, paths, (1, 4)


@pytest.mark.parametrize("batch_size", [1, 2, 64])
def test_an_image_without_a_finite_answer_is_reported_and_the_others_keep_theirs(overflowing, batch_size):
    net, paths, finite = overflowing
    for results in (
        list(predict_files(net, paths, batch_size=batch_size)),
        [result for _, result in file_features(net, paths, batch_size=batch_size)],
    ):
        bad = {position: result for position, result in enumerate(results) if isinstance(result, UnreadableFile)}
        assert set(range(5)) - bad.keys() == set(finite)
        assert all(result.path == paths[position] for position, result in bad.items())
        assert all("no finite answer" in result.reason for result in bad.values())


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_one_number_that_is_not_finite_is_enough(net, tmp_path, monkeypatch, value):
    def forward(self, images):
        logits = torch.tensor([[1.0, 0.0]]).repeat(len(images), 1)
        logits[1, 1] = value
        return logits

    monkeypatch.setattr(TIGraNet, "forward", forward)
    results = list(predict_files(net, write_images(tmp_path, 3)))
    assert [type(result) for result in results] == [Prediction, UnreadableFile, Prediction]
    assert [result.label for result in results if isinstance(result, Prediction)] == ["bolt"] * 2


def test_files_that_are_known_to_be_unreadable_are_passed_on(net, tmp_path):
    paths = write_images(tmp_path, 3)
    unreadable = UnreadableFile(tmp_path / "pipe.png", "is a named pipe")
    results = list(predict_files(net, [paths[0], unreadable, *paths[1:]], batch_size=2))
    assert results[1] == unreadable
    assert [Path(result.path) for result in results] == [paths[0], unreadable.path, *paths[1:]]


@pytest.mark.parametrize("in_maps", [1, 3])
def test_grey_and_colour_files_are_read_by_grey_and_by_colour_models(tmp_path, in_maps):
    """A grey image that is saved in colour, with a palette or with transparency, has the prediction of the original."""
    net = TIGraNet("SC[2,2]-S[2]", 2, in_maps=in_maps, image_size=10).eval()
    (grey,) = write_images(tmp_path, 1)
    files = [grey]
    for mode in ("RGB", "RGBA", "P", "LA"):
        files.append(tmp_path / f"{mode}.png")
        Image.open(grey).convert(mode).save(files[-1])
    results = list(predict_files(net, files))
    assert [Path(result.path) for result in results] == files
    for result in results:
        assert result.probability == pytest.approx(results[0].probability, abs=1e-5)


def test_an_image_with_other_channels_than_a_colour_model_is_reported(tmp_path):
    net = TIGraNet("SC[2,2]-S[2]", 2, in_maps=4, image_size=10).eval()
    (result,) = predict_files(net, write_images(tmp_path, 1))
    assert result.reason == "has 1 channels, the model reads 4"


def test_a_model_without_an_image_size_is_an_error(tmp_path):
    with pytest.raises(ValueError, match=r"image_size.* 'tigranet train'"):
        next(predict_files(TIGraNet("SC[2,2]-S[2]", 2), write_images(tmp_path, 1)))


def test_a_network_in_training_mode_predicts_in_evaluation_mode_and_keeps_its_moments(net, tmp_path):
    paths = write_images(tmp_path, 3)
    expected = list(predict_files(net, paths))
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    net.train()
    assert list(predict_files(net, paths)) == expected
    assert net.training
    assert all(torch.equal(before[name], tensor) for name, tensor in net.state_dict().items())


def test_files_are_computed_on_the_device_of_the_network(net, tmp_path, monkeypatch):
    """The meta device stands for a GPU."""
    devices = []

    def outputs(images, *_):
        devices.append(images.device.type)
        return torch.zeros(len(images), 2)

    paths = write_images(tmp_path, 3)
    net = net.to("meta")
    monkeypatch.setattr(net, "features", outputs)
    monkeypatch.setattr(TIGraNet, "forward", lambda self, images: outputs(images))
    assert [features.device.type for _, features in file_features(net, paths)] == ["cpu"] * 3
    assert [prediction.probability for prediction in predict_files(net, paths)] == [0.5] * 3
    assert devices == ["meta", "meta"]


@pytest.mark.gpu
def test_files_have_the_same_predictions_on_a_gpu(net, tmp_path):
    paths = write_images(tmp_path, 5)
    expected = list(predict_files(net, paths))
    for actual, prediction in zip(predict_files(net.cuda(), paths), expected, strict=True):
        assert actual.label == prediction.label
        assert actual.probability == pytest.approx(prediction.probability, abs=1e-4)


@pytest.mark.parametrize(
    "architecture", ["SC[2,3]-DP[9]-S[1]", "MC[3,2]-OP[2]-S[1]", "MC[3,2]-OP[2]-MC[4,2]-DP[9]-S[2]"]
)
def test_every_feature_has_a_name_for_all_kinds_of_layers(architecture):
    net = TIGraNet(architecture, num_classes=2)
    names = feature_names(net)
    assert len(names) == len(set(names)) == net.features(torch.rand(1, 1, 6, 6)).shape[1]


def test_naming_the_features_does_not_change_the_network():
    net = TIGraNet("MC[3,2]-OP[2]-S[1]", num_classes=2).train()
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    feature_names(net)
    assert net.training
    assert all(torch.equal(before[name], tensor) for name, tensor in net.state_dict().items())


@pytest.fixture
def modes(net, monkeypatch):
    """The kernels in use at each call of the network."""
    monkeypatch.setenv("TIGRANET_KERNELS", "auto")
    modes = []
    forward = TIGraNet.forward

    def recorded(self, images):
        modes.append(kernel_mode())
        return forward(self, images)

    monkeypatch.setattr(TIGraNet, "forward", recorded)
    return modes


def test_few_pixels_are_computed_in_plain_pytorch(net, tmp_path, modes):
    for _ in predict_files(net, write_images(tmp_path, 3)):
        assert kernel_mode() == "auto"  # the choice ends with the computation
    assert modes == ["plain"]


def test_several_batches_and_many_pixels_are_computed_by_kernels(net, tmp_path, modes, monkeypatch):
    paths = write_images(tmp_path, 3)
    list(predict_files(net, paths, batch_size=2))
    list(predict_files(net, paths, batch_size=3))  # there might have been a second batch
    monkeypatch.setattr("tigranet.evaluation.file_predictions.MAX_PLAIN_PIXELS", 299)
    list(predict_files(net, paths))
    assert modes == ["auto"] * 4
    assert MAX_PLAIN_PIXELS >= 28 * 28


def test_the_users_choice_of_kernels_takes_precedence(net, tmp_path, modes):
    paths = write_images(tmp_path, 3)
    with using("fused"):
        list(predict_files(net, paths))
    assert modes == ["fused"]


@pytest.mark.parametrize("architecture", ["SC[3,3]-DP[40]-SC[4,3]-DP[20]-S[4]", "MC[4,2]-OP[2,1]-MC[4,2]-S[3]"])
def test_both_kinds_of_kernels_give_the_same_features(tmp_path, monkeypatch, architecture):
    torch.manual_seed(0)
    net = TIGraNet(architecture, 2, image_size=10).eval()
    paths = write_images(tmp_path, 4)
    plain = torch.stack([features for _, features in file_features(net, paths)])
    monkeypatch.setattr("tigranet.evaluation.file_predictions.MAX_PLAIN_PIXELS", 0)
    fused = torch.stack([features for _, features in file_features(net, paths)])
    torch.testing.assert_close(plain, fused, rtol=1e-4, atol=1e-6)
