import pytest
import torch
from PIL import Image

from images import fill
from tigranet import TIGraNet
from tigranet.data import UnreadableFile
from tigranet.evaluation import predict_files
from tigranet.evaluation.conformal import ConformalCalibration
from tigranet.evaluation.evidence import evidence_maps
from tigranet.evaluation.file_explanations import explain_files
from tigranet.evaluation.file_predictions import LabelSets


@pytest.fixture
def net():
    return TIGraNet("SC[2,2]-S[2]", 3, class_names=["a", "b", "c"], image_size=12).eval()


@pytest.fixture
def paths(tmp_path):
    return sorted(fill(tmp_path, {"a": 5}).rglob("*.png"))


def test_each_file_has_its_prediction_and_the_evidence_of_its_image(net, paths):
    (paths[1].parent / "bad.png").write_bytes(b"")
    sets = LabelSets(ConformalCalibration(20, tuple(torch.linspace(0.5, 1.2, 20).tolist())), 0.5)
    files = [*paths, paths[1].parent / "bad.png"]
    results = list(explain_files(net, files, 0.5, label_sets=sets, batch_size=2))
    assert isinstance(results.pop(), UnreadableFile)
    assert [each.prediction for each in results] == list(predict_files(net, paths, 0.5, label_sets=sets))
    expected = evidence_maps(net, torch.stack([each.image for each in results]))
    for number, each in enumerate(results):
        torch.testing.assert_close(each.evidence, expected.maps[number], atol=1e-6, rtol=1e-4)
        assert each.score == pytest.approx(float(each.evidence.sum()) + each.constant, abs=1e-5)
        assert each.explained_class == net.class_names[int(expected.classes[number])]


def test_one_class_can_be_explained_for_all_images(net, paths):
    results = list(explain_files(net, paths, explained_class="b"))
    assert {each.explained_class for each in results} == {"b"}
    expected = evidence_maps(net, results[0].image[None], torch.tensor([1])).maps[0]
    torch.testing.assert_close(results[0].evidence, expected)
    with pytest.raises(ValueError, match=r"'d'.*a, b, c"):
        next(explain_files(net, paths, explained_class="d"))


def test_label_sets_and_evidence_of_rotated_files_are_exactly_the_same(net, paths):
    sets = LabelSets(ConformalCalibration(20, tuple(torch.linspace(0.5, 1.2, 20).tolist())), 0.5)
    before = list(predict_files(net, paths, label_sets=sets)), list(explain_files(net, paths))
    for path in paths:
        Image.open(path).transpose(Image.Transpose.ROTATE_90).save(path)
    after = list(predict_files(net, paths, label_sets=sets)), list(explain_files(net, paths))
    assert after[0] == before[0]
    assert len({each.labels for each in after[0]}) >= 1
    for rotated, upright in zip(after[1], before[1], strict=True):
        assert torch.equal(rotated.evidence, torch.rot90(upright.evidence, 1, (0, 1)))


def test_the_first_label_of_a_set_is_the_predicted_one(net, paths):
    everything = LabelSets(ConformalCalibration(0, ()), 0.9)
    for prediction in predict_files(net, paths, label_sets=everything):
        assert prediction.labels[0] == prediction.label
        assert sorted(prediction.labels) == ["a", "b", "c"]
    assert all(prediction.labels is None for prediction in predict_files(net, paths))
