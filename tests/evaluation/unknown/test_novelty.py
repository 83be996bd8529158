import pytest
import torch

from images import fill
from tigranet import TIGraNet
from tigranet.data import LabelledImages
from tigranet.evaluation import predict_files
from tigranet.evaluation.file_explanations import explain_files
from tigranet.evaluation.unknown import novelty as module
from tigranet.evaluation.unknown.novelty import NoveltyDetector, UnknownImages, logits_and_novelty


@pytest.fixture(scope="module")
def net(mnist_012):
    """A network with random weights. Its features are those of the digits it was calibrated on."""
    torch.manual_seed(0)
    net = TIGraNet("MC[6,3]-OP[4]-MC[6,3]-S[2]-FC[8]", 3, image_size=28)
    with torch.no_grad():
        net(mnist_012.train.images[:60])
    return net.eval()


@pytest.fixture(scope="module")
def detector(net, mnist_012):
    return NoveltyDetector.fit(net, part(mnist_012.train, 0, 120), part(mnist_012.train, 120, 180))


def part(data, start, stop):
    return LabelledImages(data.images[start:stop], data.labels[start:stop])


def rows(net, detector, images, share=0.95):
    with torch.inference_mode():
        return logits_and_novelty(net, UnknownImages(detector, share))(images)


def test_noise_and_blank_frames_are_unknown_and_digits_are_known(net, detector, mnist_012):
    unknown = torch.cat([torch.rand(9, 1, 28, 28), torch.zeros(1, 1, 28, 28), torch.full((1, 1, 28, 28), 0.5)])
    assert (rows(net, detector, unknown)[:, -1] > 1).all()
    assert (rows(net, detector, mnist_012.train.images[180:280])[:, -1] <= 1).double().mean() > 0.85


def test_the_share_of_validation_images_is_accepted(net, detector, mnist_012):
    images = mnist_012.train.images[120:180]
    for share in (0.3, 0.5, 0.9):
        accepted = (rows(net, detector, images, share)[:, -1] <= 1 + 1e-9).double().mean()
        assert accepted == pytest.approx(share, abs=0.021)


def test_an_image_and_its_quarter_turns_have_the_same_numbers(net, detector, mnist_012):
    images = torch.cat([mnist_012.train.images[180:184], torch.rand(1, 1, 28, 28)])
    turned = torch.cat([torch.rot90(images, turns, (2, 3)) for turns in range(4)])
    answers = rows(net, detector, turned).reshape(4, 5, -1)
    assert (answers == answers[:1]).all()


def test_the_labels_of_files_follow_the_novelty_and_the_probability(net, detector, tmp_path):
    folder = fill(tmp_path, {"a": 4})
    paths = sorted(folder.rglob("*.png"))
    for share in (0.05, 0.95):
        predictions = list(predict_files(net, paths, unknown=UnknownImages(detector, share)))
        for prediction in predictions:
            assert prediction.novelty is not None
            assert (prediction.label == "unknown") == (prediction.novelty > 1)
    rejected = predict_files(net, paths, reject=1.0, unknown=UnknownImages(detector))
    assert {prediction.label for prediction in rejected} == {"unknown"}
    explained = [each.prediction for each in explain_files(net, paths, unknown=UnknownImages(detector, 0.95))]
    assert explained == predictions
    assert all(prediction.novelty is None for prediction in predict_files(net, paths))


def test_single_images_of_classes_and_few_validation_images_suffice(net, mnist_012):
    few = part(mnist_012.train, 0, 5)
    detector = NoveltyDetector.fit(net, few, part(mnist_012.train, 120, 122))
    noise = rows(net, detector, torch.rand(3, 1, 28, 28))[:, -1]
    assert noise.isfinite().all()
    with pytest.raises(ValueError, match="at least 2 validation images, got 1"):
        NoveltyDetector.fit(net, few, part(mnist_012.train, 120, 121))
    with pytest.raises(ValueError, match="at least 2 training images with finite features, got 1"):
        NoveltyDetector.fit(net, part(mnist_012.train, 0, 1), few)


def test_many_images_are_sampled_and_too_many_classes_are_refused(net, mnist_012, monkeypatch):
    monkeypatch.setattr(module, "MAX_TRAINING_IMAGES", 12)
    monkeypatch.setattr(module, "MAX_SCORES", 7)
    detector = NoveltyDetector.fit(net, part(mnist_012.train, 0, 40), part(mnist_012.train, 40, 60))
    assert len(detector.known.scores) == 7
    assert "7 validation images" in detector.describe()
    monkeypatch.setattr(module, "MAX_CLASS_NUMBERS", 10)
    with pytest.raises(ValueError, match="classes"):
        NoveltyDetector.fit(net, part(mnist_012.train, 0, 40), part(mnist_012.train, 40, 60))
