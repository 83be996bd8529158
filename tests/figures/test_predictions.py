import torch
from matplotlib.figure import Figure
from torch import nn

from tigranet.data import LabelledImages
from tigranet.figures.maps import WRONG
from tigranet.figures.predictions import draw_answers


class Always(nn.Module):
    def __init__(self, answer):
        super().__init__()
        self.answer = answer

    def forward(self, images):
        return nn.functional.one_hot(torch.full((len(images),), self.answer), 2).float()


def test_every_network_has_a_row_with_its_answers_and_its_mistakes_framed():
    moved = LabelledImages(torch.rand(4, 1, 6, 6), torch.tensor([0, 1, 1, 1]))
    places = list(Figure().subplots(2, 1))
    draw_answers(places, {"A": Always(0), "B": Always(1)}, moved, ["no", "yes"], [0, 3])
    assert [place.get_title(loc="left") for place in places] == ["A: 25.0 % of 4 right", "B: 75.0 % of 4 right"]
    assert [[text.get_text() for text in place.texts] for place in places] == [["no", "no"], ["yes", "yes"]]
    framed = [[text.get_color() == WRONG for text in place.texts] for place in places]
    assert framed == [[False, True], [True, False]]
