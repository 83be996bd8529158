import torch
from matplotlib.figure import Figure
from torch import nn

from tigranet.data import LabelledImages
from tigranet.figures.maps import ERROR_COLOUR
from tigranet.figures.predictions import draw_predictions


class ConstantClassifier(nn.Module):
    def __init__(self, prediction):
        super().__init__()
        self.prediction = prediction

    def forward(self, images):
        return nn.functional.one_hot(torch.full((len(images),), self.prediction), 2).float()


def test_every_network_has_a_row_with_its_predictions_and_marked_errors():
    data = LabelledImages(torch.rand(4, 1, 6, 6), torch.tensor([0, 1, 1, 1]))
    rows = list(Figure().subplots(2, 1))
    draw_predictions(rows, {"A": ConstantClassifier(0), "B": ConstantClassifier(1)}, data, ["no", "yes"], [0, 3])
    for row, name, accuracy in zip(rows, "AB", ("25.0 %", "75.0 %"), strict=True):
        title = row.get_title(loc="left")
        assert title.startswith(f"{name}: ")
        assert accuracy in title
        assert "4 images" in title
    assert [[text.get_text() for text in row.texts] for row in rows] == [["no", "no"], ["yes", "yes"]]
    marked = [[text.get_color() == ERROR_COLOUR for text in row.texts] for row in rows]
    assert marked == [[False, True], [True, False]]
