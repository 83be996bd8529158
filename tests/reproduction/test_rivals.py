import torch

from tigranet import TIGraNet
from tigranet.data import DataSet, LabelledImages
from tigranet.reproduction.rivals import rivals_of


def test_they_are_of_the_networks_kind_and_trained_on_its_images(mnist_012):
    few = LabelledImages(mnist_012.train.images[:20], mnist_012.train.labels[:20])
    data = DataSet("few", mnist_012.class_names, few, few.take([]), few)
    small = rivals_of(TIGraNet("paper-small", 3), data, epochs=1)
    assert list(small) == ["ConvNet", "STN"]
    assert str(small["STN"].architecture) == "C[3]-ST[6]-C[6]-ST[6]-FC[50]-FC[30]-FC[10]"
    large = rivals_of(TIGraNet("paper", 3), data, epochs=1)
    assert "FC[500]" in str(large["ConvNet"].architecture)
    again = rivals_of(TIGraNet("paper-small", 3), data, epochs=1)
    assert torch.equal(again["STN"](few.images), small["STN"](few.images))
