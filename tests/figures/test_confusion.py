from itertools import pairwise

import numpy as np
import pytest
from matplotlib.figure import Figure

from tigranet.figures.confusion import (
    MAX_DRAWN_CLASSES,
    MAX_NAME_LENGTH,
    classes_with_most_errors,
    confusion_size,
    draw_confusion,
    shorten,
)


def draw(counts, names):
    figure = Figure(figsize=confusion_size(names), layout="constrained")
    draw_confusion(figure.add_subplot(), counts, names)
    figure.draw_without_rendering()
    return figure


def test_every_nonzero_count_is_written_in_its_cell():
    axes = draw([[5, 1, 0], [0, 4, 0], [0, 0, 0]], ["a", "b", "c"]).axes[0]
    assert {(text.get_position(), text.get_text()) for text in axes.texts} == {
        ((0, 0), "5"),
        ((1, 0), "1"),
        ((1, 1), "4"),
    }
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b", "c"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("predicted class", "true class")


def test_the_row_of_a_class_without_images_is_white():
    axes = draw([[0, 0], [0, 3]], ["a", "b"]).axes[0]
    shade = axes.images[0].get_array()
    assert shade[0].max() == 0
    assert shade[1, 1] == 1


@pytest.mark.parametrize("classes", [2, 3, 12, 13, 40])
@pytest.mark.parametrize("letters", [1, 12, 80])
def test_numbers_fit_in_their_cells_and_names_in_the_figure(classes, letters):
    names = [f"{number}" * letters for number in range(classes)]
    figure = draw([[188] * classes] * classes, names)
    axes = figure.axes[0]
    cell = axes.transData.transform((1, 0)) - axes.transData.transform((0, 0))
    assert max(text.get_window_extent().width for text in axes.texts) < cell[0]
    assert min(text.get_fontsize() for text in axes.texts) >= 7
    for label in (*axes.get_xticklabels(), *axes.get_yticklabels()):
        box = label.get_window_extent()
        assert box.x0 >= 0
        assert box.y0 >= 0
    bottom = sorted((label.get_window_extent() for label in axes.get_xticklabels()), key=lambda box: box.x0)
    assert all(left.x1 <= right.x0 for left, right in pairwise(bottom))


def test_class_names_are_not_parsed_as_formulas():
    labels = draw([[1, 0], [0, 1]], ["$5", "$x^{$"]).axes[0].get_yticklabels()
    assert [label.get_text() for label in labels] == ["$5", "$x^{$"]


def test_long_names_are_shortened():
    assert len(shorten("a" * 100)) == MAX_NAME_LENGTH


def test_of_many_classes_those_with_the_most_errors_are_drawn():
    counts = np.diag(np.full(600, 10))
    confused = [5, *range(100, 100 + MAX_DRAWN_CLASSES - 2), 599]
    for truth, predicted in zip(confused, confused[1:] + confused[:1], strict=True):
        counts[truth, predicted] = 10
    names = [f"class {number}" for number in range(600)]
    figure = draw(counts.tolist(), names)
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == [names[label] for label in confused]
    assert axes.get_title(loc="left").startswith("40 of 600 classes drawn")
    assert len(axes.texts) == 2 * MAX_DRAWN_CLASSES
    assert axes.images[0].get_array()[0, 0] == 0.5  # of all images of the class, not of those that are drawn
    assert max(figure.get_size_inches()) < 15
    assert draw(counts[:40, :40].tolist(), names[:40]).axes[0].get_title(loc="left") == ""


def test_classes_with_errors_in_their_row_or_in_their_column_are_selected():
    counts = [[9, 0, 0, 0], [0, 9, 2, 0], [0, 0, 1, 0], [0, 0, 0, 0]]
    assert classes_with_most_errors(counts, 2) == [1, 2]
    assert classes_with_most_errors(counts, 3) == [0, 1, 2]  # of classes without errors, that with the most images
    assert classes_with_most_errors(counts, 4) == [0, 1, 2, 3]


@pytest.mark.parametrize("name", ["a\nb\x1b[31m", "caf\udce9", "a\ud800", "x" * 10_000, ""], ids=range(5))
def test_any_class_name_is_drawn(name):
    figure = draw([[1, 0], [0, 1]], [name, "b"])
    assert figure.axes[0].get_yticklabels()[0].get_text() == shorten(name)
    assert max(figure.get_size_inches()) < 5
