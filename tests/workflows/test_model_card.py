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
