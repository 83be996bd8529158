import numpy as np
import pytest
import torch
from PIL import Image

from tigranet import TIGraNet
from tigranet.data import UnreadableFile
from tigranet.evaluation import Prediction, predict_files
from tigranet.evaluation.file_predictions import feature_names


@pytest.fixture
def net():
    torch.manual_seed(0)
    return TIGraNet("SC[2,2]-S[2]", 2, class_names=["bolt", "nut"], image_size=10).eval()


def files(folder, count, mode="L"):
    shape = (10, 10) if mode == "L" else (10, 10, 3)
    for number in range(count):
        pixels = np.random.default_rng(number).integers(0, 256, shape, dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number:02d}.png")
    return sorted(folder.glob("*.png"))


def test_each_file_has_the_networks_answer(net, tmp_path):
    paths = files(tmp_path, 7)
    images = torch.stack([torch.from_numpy(np.asarray(Image.open(path)).copy()) for path in paths]).unsqueeze(1) / 255
    probabilities, labels = net(images).detach().softmax(1).max(1)
    found = list(predict_files(net, paths, batch_size=3))
    assert [answer.path for answer in found] == [str(path) for path in paths]
    assert [answer.label for answer in found] == [("bolt", "nut")[label] for label in labels]
    assert [answer.probability for answer in found] == pytest.approx(probabilities.tolist(), abs=1e-5)


def test_turned_files_get_the_same_answer(net, tmp_path):
    paths = files(tmp_path, 4)
    before = list(predict_files(net, paths))
    for path in paths:
        Image.open(path).transpose(Image.Transpose.ROTATE_90).save(path)
    for came, wanted in zip(predict_files(net, paths), before, strict=True):
        assert came.label == wanted.label
        assert came.probability == pytest.approx(wanted.probability, abs=1e-5)


def test_a_doubtful_answer_is_unknown(net, tmp_path):
    paths = files(tmp_path, 3)
    assert {answer.label for answer in predict_files(net, paths, reject=1.0)} == {"unknown"}
    with pytest.raises(ValueError, match=r"reject is a probability in \[0, 1\], got 2"):
        next(predict_files(net, paths, reject=2.0))


def test_broken_files_do_not_stop_the_rest(net, tmp_path):
    paths = files(tmp_path, 5)
    paths[1].write_bytes(b"")
    paths[4].write_bytes(b"nothing")
    found = list(predict_files(net, [*paths, tmp_path / "none.png"], batch_size=2))
    assert [type(answer) for answer in found] == [
        Prediction,
        UnreadableFile,
        Prediction,
        Prediction,
        UnreadableFile,
        UnreadableFile,
    ]


def test_a_grey_image_for_a_colour_model_is_named(tmp_path):
    net = TIGraNet("SC[2,2]-S[2]", 2, in_maps=3, image_size=10).eval()
    (found,) = predict_files(net, files(tmp_path, 1))
    assert found.reason == "has 1 channels, the model reads 3"
    (found,) = predict_files(net, files(tmp_path, 1, "RGB"))
    assert found.label in ("0", "1")


def test_a_model_that_knows_no_size_says_so(tmp_path):
    with pytest.raises(ValueError, match="does not say what size its images had"):
        next(predict_files(TIGraNet("SC[2,2]-S[2]", 2), files(tmp_path, 1)))


@pytest.mark.parametrize(
    "architecture", ["SC[2,3]-DP[9]-S[1]", "MC[3,2]-OP[2]-S[1]", "MC[3,2]-OP[2]-MC[4,2]-DP[9]-S[2]"]
)
def test_every_statistic_has_a_name_whatever_the_layers(architecture):
    net = TIGraNet(architecture, num_classes=2)
    names = feature_names(net)
    assert len(names) == len(set(names)) == net.features(torch.rand(1, 1, 6, 6)).shape[1]
