from tigranet.architecture import PRESETS
from tigranet.workflows.choose_architecture import choose_architecture


def test_more_than_ten_thousand_images_get_the_larger_network():
    assert str(choose_architecture(3)) == str(choose_architecture(10_000)) == PRESETS["oriented-small"]
    assert str(choose_architecture(10_001)) == PRESETS["oriented"]
