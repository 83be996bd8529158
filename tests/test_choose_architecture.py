import math

import pytest

from tigranet import choose_architecture as module
from tigranet.architecture import PRESETS, Architecture
from tigranet.choose_architecture import (
    DEFAULT_PRESETS,
    PresetRange,
    choose_architecture,
    choose_preset,
    default_size_limit,
)
from tigranet.data.letterbox import MAX_DEFAULT_SIZE


def test_a_small_network_up_to_ten_thousand_small_images():
    assert str(choose_architecture(3, 28)) == str(choose_architecture(10_000, 28)) == PRESETS["oriented-small"]
    assert str(choose_architecture(10_001, 28)) == PRESETS["oriented"]


def test_the_table_covers_all_data_with_known_presets():
    assert {row.preset for row in DEFAULT_PRESETS} <= set(PRESETS)
    assert DEFAULT_PRESETS[-1][1:] == (math.inf, math.inf)
    for row in DEFAULT_PRESETS:
        images, side = (10**9 if limit == math.inf else int(limit) for limit in row[1:])
        assert choose_preset(images, side) == row.preset  # no row is hidden by an earlier one


def test_the_first_row_whose_limits_are_kept_decides(monkeypatch):
    rows = (
        PresetRange("small images", max_side=47),
        PresetRange("few large images", max_images=1000),
        PresetRange("many large images"),
    )
    monkeypatch.setattr(module, "DEFAULT_PRESETS", rows)
    chosen = [choose_preset(*data) for data in ((10**6, 47), (1000, 48), (1001, 48))]
    assert chosen == [row.preset for row in rows]


@pytest.mark.parametrize("preset", ["oriented-small", "oriented", "oriented-large", "paper-small", "paper"])
def test_networks_that_keep_the_resolution_get_small_images(monkeypatch, preset):
    monkeypatch.setattr(module, "MAX_DEFAULT_SIZE", 224)
    assert default_size_limit(Architecture.parse(preset)) == 64


def test_other_networks_get_larger_images(monkeypatch):
    assert default_size_limit(None) == MAX_DEFAULT_SIZE
    monkeypatch.setattr(module, "MAX_DEFAULT_SIZE", 224)
    assert default_size_limit(None) == 224
    for preset in ("pyramid-small", "pyramid", "pyramid-large"):
        assert default_size_limit(Architecture.parse(preset)) == 224
    monkeypatch.setattr(module, "MAX_DEFAULT_SIZE", 32)
    assert default_size_limit(Architecture.parse("oriented")) == 32
