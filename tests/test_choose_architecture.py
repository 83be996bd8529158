import math

import pytest

from tigranet import choose_architecture as module
from tigranet.architecture import PRESETS, Architecture
from tigranet.choose_architecture import (
    CPU_PRESETS,
    GPU_PRESETS,
    PresetRange,
    choose_architecture,
    choose_preset,
    default_size_limit,
)
from tigranet.data.letterbox import MAX_DEFAULT_SIZE


def test_small_networks_on_a_cpu_and_large_ones_on_a_gpu():
    assert str(choose_architecture(3, 28, gpu=False)) == PRESETS["pyramid-tiny"]
    assert str(choose_architecture(10_001, 28, gpu=False)) == PRESETS["oriented"]
    assert str(choose_architecture(10_001, 64, gpu=False)) == PRESETS["pyramid-small"]
    assert str(choose_architecture(300, 64, gpu=True)) == PRESETS["pyramid-large"]
    assert str(choose_architecture(300, 224, gpu=True)) == PRESETS["pyramid"]


@pytest.mark.parametrize("gpu", [False, True])
def test_the_tables_cover_all_data_with_known_presets(gpu):
    rows = GPU_PRESETS if gpu else CPU_PRESETS
    assert {row.preset for row in rows} <= set(PRESETS)
    assert rows[-1][1:] == (math.inf, math.inf)
    for row in rows:
        images, side = (10**9 if limit == math.inf else int(limit) for limit in row[1:])
        assert choose_preset(images, side, gpu) == row.preset  # no row is hidden by an earlier one


def test_the_first_row_whose_limits_are_kept_decides(monkeypatch):
    rows = (
        PresetRange("small images", max_side=47),
        PresetRange("few large images", max_images=1000),
        PresetRange("many large images"),
    )
    monkeypatch.setattr(module, "CPU_PRESETS", rows)
    chosen = [choose_preset(*data, gpu=False) for data in ((10**6, 47), (1000, 48), (1001, 48))]
    assert chosen == [row.preset for row in rows]


@pytest.mark.parametrize("preset", ["oriented-small", "oriented", "oriented-large", "paper-small", "paper"])
def test_networks_that_keep_the_resolution_get_small_images(monkeypatch, preset):
    monkeypatch.setattr(module, "MAX_DEFAULT_SIZE", 224)
    assert default_size_limit(Architecture.parse(preset)) == 64


def test_other_networks_get_larger_images(monkeypatch):
    assert default_size_limit(None) == MAX_DEFAULT_SIZE
    monkeypatch.setattr(module, "MAX_DEFAULT_SIZE", 224)
    assert default_size_limit(None) == 224
    for preset in ("pyramid-tiny", "pyramid-small", "pyramid", "pyramid-large"):
        assert default_size_limit(Architecture.parse(preset)) == 224
    monkeypatch.setattr(module, "MAX_DEFAULT_SIZE", 32)
    assert default_size_limit(Architecture.parse("oriented")) == 32
