from dataclasses import replace

import pytest
import torch
from PIL import Image

from tigranet import TIGraNet
from tigranet.baselines import ConvNet
from tigranet.data import DataSet, Isometry, LabelledImages
from tigranet.figures.gallery import _example, _one_of_each, save_gallery

NAMES = ["after-pooling", "answers", "filters", "pooling", "test-images", "turned"]


def test_every_picture_is_written_twice(tmp_path, trained, mnist_012):
    written = save_gallery(tmp_path / "new", trained, mnist_012, rivals={"ConvNet": ConvNet("paper-small", 3, 28)})
    assert sorted(path.name for path in written) == [f"{name}.{suffix}" for name in NAMES for suffix in ("png", "svg")]
    for path in written:
        if path.suffix == ".png":
            with Image.open(path) as picture:
                assert picture.size[0] >= 1000


def test_the_same_picture_is_the_same_file(tmp_path):
    images = LabelledImages(torch.rand(6, 1, 9, 9), torch.arange(6) % 2)
    data = DataSet("d", ("a", "b"), images, images, images, Isometry(max_shift=1))
    net = TIGraNet("SC[2,2]-S[1]", 2).eval()  # without pooling
    first, second = (save_gallery(tmp_path / name, net, data) for name in ("one", "two"))
    assert sorted({path.stem for path in first}) == [
        "filters",
        "test-images",
        "turned",
    ]  # and no answers without rivals
    assert all(one.read_bytes() == two.read_bytes() for one, two in zip(first, second, strict=True))


def test_a_network_without_the_papers_layers_is_drawn_without_their_pictures(tmp_path):
    images = LabelledImages(torch.rand(6, 1, 9, 9), torch.arange(6) % 2)
    data = DataSet("d", ("a", "b"), images, images, images)
    written = save_gallery(tmp_path, TIGraNet("MC[2,2]-OP[1]-MC[3,1]-S[1]", 2).eval(), data)
    assert sorted({path.stem for path in written}) == ["test-images", "turned"]


def test_colours_and_images_that_are_not_square_are_drawn(tmp_path):
    images = LabelledImages(torch.rand(4, 3, 8, 11), torch.tensor([0, 0, 1, 2]))
    data = DataSet("d", ("a", "b", "c"), images, images, images, Isometry(padding="reflection"))
    save_gallery(tmp_path, TIGraNet("SC[2,2]-DP[9]-SC[7,2]-DP[5]-S[1]", 3, in_maps=3).eval(), data)


def test_a_network_that_is_never_right_and_names_without_letters_are_drawn(tmp_path, monkeypatch):
    images = LabelledImages(torch.rand(6, 1, 9, 9), torch.arange(6) % 2)
    data = DataSet("d", ("日本", "語"), images, images, images)
    monkeypatch.setattr("tigranet.figures.gallery.predict", lambda _, images: torch.full((len(images),), 1))
    right = save_gallery(tmp_path / "half", TIGraNet("SC[2,2]-S[1]", 2).eval(), data)
    ones = data.test._replace(labels=torch.zeros(6, dtype=torch.int64))
    wrong = save_gallery(tmp_path / "never", TIGraNet("SC[2,2]-S[1]", 2).eval(), replace(data, test=ones))
    assert [path.name for path in wrong] == [path.name for path in right]


def test_classes_take_turns():
    labels = torch.tensor([2, 2, 0, 1, 0, 2])
    assert _one_of_each(labels).tolist() == [2, 3, 0, 4, 1, 5]


@pytest.mark.parametrize(("answers", "wanted"), [([0, 2, 2], 3), ([0, 1, 0], 2)])
def test_the_example_is_one_that_is_read_right_where_there_is_one(monkeypatch, answers, wanted):
    images = LabelledImages(torch.rand(5, 1, 4, 4), torch.tensor([0, 1, 2, 2, 2]))
    data = DataSet("d", ("a", "b", "c"), images, images, images)
    monkeypatch.setattr("tigranet.figures.gallery.predict", lambda *_: torch.tensor(answers))
    assert _example(TIGraNet("SC[1,1]-S[1]", 3), data) == wanted
