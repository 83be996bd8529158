"""A card says what was measured."""

import torch

from tigranet import TIGraNet
from tigranet.data import load
from tigranet.reproduction.model_card import card
from tigranet.reproduction.runner import train_and_measure
from tigranet.training import Recipe


def test_a_card_has_every_accuracy_and_what_made_it():
    torch.manual_seed(0)
    data = load("mnist-012")
    net = TIGraNet("SC[2,2]-S[2]-FC[4]", 3)
    measured = train_and_measure(net, "SC[2,2]-S[2]-FC[4]", data, Recipe(epochs=1), boundary="free")
    text = card(measured, 500, "tigranet train mnist-012")
    for wanted in (
        "500\nupright images of mnist-012",
        "`tigranet train mnist-012`",
        "| turned by 90 degrees |",
        "epochs 1",
    ):
        assert wanted in text
    assert f"| upright | {measured.test:.2f} |" in text
