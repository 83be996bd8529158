import re

import pytest
import torch

from tigranet.architecture import Architecture
from tigranet.choose_window import choose_window

PHOTOGRAPHS, OBJECTS = torch.rand(5, 3, 8, 8), torch.zeros(5, 3, 8, 8)


def network(has_group_convolutions):
    return Architecture.parse("LC[2,3]-MO[4]-S[0]" if has_group_convolutions else "oriented-small")


@pytest.mark.parametrize("images", [PHOTOGRAPHS, OBJECTS])
@pytest.mark.parametrize("has_group_convolutions", [True, False])
@pytest.mark.parametrize("window", ["none", "disc"])
def test_a_request_is_followed(images, has_group_convolutions, window):
    choice = choose_window(window, network(has_group_convolutions), images)
    assert choice.window == window
    assert "as requested" in choice.reason


@pytest.mark.parametrize(
    ("images", "has_group_convolutions", "expected", "reason"),
    [
        (PHOTOGRAPHS, True, "disc", "5 of 5 .* fill their frame.*--window none"),
        (PHOTOGRAPHS, False, "none", "default of this network.*5 of 5 .* fill their frame.*--window disc"),
        (OBJECTS, True, "none", "0 of 5 .* fill their frame"),
        (OBJECTS, False, "none", "0 of 5 .* fill their frame"),
    ],
)
def test_auto_decides_from_the_images_and_the_network(images, has_group_convolutions, expected, reason):
    choice = choose_window("auto", network(has_group_convolutions), images)
    assert choice.window == expected
    assert re.search(reason, choice.reason)


def test_existing_presets_are_not_changed():
    for preset in ("paper-small", "paper", "oriented-small", "oriented", "oriented-large"):
        assert choose_window("auto", Architecture.parse(preset), PHOTOGRAPHS).window == "none"


@pytest.mark.parametrize("option", ["circle", None, 1, ""])
def test_other_options_are_refused(option, without_shape_checks):
    with pytest.raises(ValueError, match=r"window.*'auto', 'none', 'disc'.*got"):
        choose_window(option, network(True), PHOTOGRAPHS)
