from dataclasses import replace

from tigranet import TIGraNet
from tigranet.training import Recipe
from tigranet.workflows.measured_training import train_and_measure
from tigranet.workflows.model_card import model_card


def test_a_card_has_every_accuracy_and_the_training(small):
    net = TIGraNet("SC[2,2]-S[2]-FC[4]", 3)
    result = train_and_measure(net, "SC[2,2]-S[2]-FC[4]", small, Recipe(epochs=1), boundary="free")
    text = model_card(result, 1500, "tigranet train mnist-012")
    for words in ("1,500\nupright images of small", "`tigranet train mnist-012`", "epochs 1", "boundary free"):
        assert words in text
    assert f"| upright | {result.test:.2f} |" in text
    for movement, accuracy in result.robustness.moved.items():
        assert f"| {movement} | {accuracy} | {result.robustness.drop(movement):.2f} |" in text
    assert "`tigranet" not in model_card(result, 1500)


def test_a_card_says_whether_training_images_were_rotated(small):
    result = train_and_measure(TIGraNet("SC[2,2]-S[2]", 3), "SC[2,2]-S[2]", small, Recipe(epochs=1))
    assert "upright images of small, never rotated." in model_card(result, 30)
    text = model_card(result, 30, orientation="rotated")
    assert "rotated images of small." in text
    assert "never" not in text
    assert "upright images" not in text
    text = model_card(replace(result, robustness=replace(result.robustness, unmoved="as they are")), 30, orientation="")
    assert "30\nimages of small. It" in text
    assert f"| as they are | {result.test:.2f} |" in text
    assert "upright" not in text
    untested = replace(result, test=None, moved=None, nearest=None, robustness=None)
    assert "on\nupright images" in model_card(untested, 30)
    assert "on\nrotated images" in model_card(untested, 30, orientation="rotated")


def test_a_card_without_test_images_says_so_and_names_the_accuracies_it_has(small):
    net, recipe = TIGraNet("SC[2,2]-S[2]", 3), Recipe(epochs=1)
    for validation in (small.validation, small.validation.take([])):
        data = replace(small, test=small.test.take([]), validation=validation)
        result = train_and_measure(net, "SC[2,2]-S[2]", data, recipe)
        text = model_card(result, 30, untested_classes=data.untested_classes)
        assert "no test images" in text
        assert "| test images |" not in text
        assert f"| training images | {result.train:.2f} |" in text
        assert ("| validation images |" in text) == (result.validation is not None)


def test_a_card_names_the_classes_without_test_images(small):
    result = train_and_measure(TIGraNet("SC[2,2]-S[2]", 3), "SC[2,2]-S[2]", small, Recipe(epochs=1))
    assert "no test images" not in model_card(result, 30)
    text = model_card(result, 30, untested_classes=("1", "2"))
    assert "no test images" in text
    assert "'1', '2'" in text
