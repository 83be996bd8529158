import pytest

from tigranet import Architecture, TIGraNet
from tigranet.fine_tuning import load_start


@pytest.fixture
def saved(tmp_path):
    TIGraNet("SC[2,2]-S[2]", 2, boundary="torus", window="disc", margin=2).save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def test_options_that_are_not_given_are_those_of_the_network(saved):
    net = load_start(saved)
    assert (net.boundary, net.window, net.margin) == ("torus", "disc", 2)
    assert load_start(saved, Architecture.parse("SC[2,2]-S[2]"), "torus", "disc", 2).config == net.config


@pytest.mark.parametrize(
    "arguments", [{"architecture": Architecture.parse("paper")}, {"window": "none"}, {"margin": 1}]
)
def test_other_options_are_errors_that_name_the_network_and_the_option(saved, arguments):
    with pytest.raises(ValueError, match=f"{next(iter(arguments))}.*{saved}"):
        load_start(saved, **arguments)


def test_a_network_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_start(tmp_path / "nowhere")
