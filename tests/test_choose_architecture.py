import math

import pytest

from tigranet import choose_architecture as module
from tigranet.architecture import PRESETS, Architecture
from tigranet.choose_architecture import (
    ALL_EPOCHS_IMAGES,
    CPU_EPOCHS,
    CPU_PRESETS,
    GPU_PRESETS,
    LARGE_IMAGE_COARSENINGS,
    PresetRange,
    choose_preset,
    default_size_limit,
    epochs_share,
    faster_preset,
    named_default,
)
from tigranet.data.letterbox import MAX_DEFAULT_SIZE


def test_small_networks_on_a_cpu_and_large_ones_on_a_gpu():
    assert choose_preset(3, 28, gpu=False) == choose_preset(500, 40, gpu=False) == "pyramid-tiny"
    assert choose_preset(501, 28, gpu=False) == choose_preset(50_000, 40, gpu=False) == "pyramid-medium"
    assert choose_preset(3, 64, gpu=False) == choose_preset(1_000, 41, gpu=False) == "pyramid-small"
    assert choose_preset(1_001, 41, gpu=False) == choose_preset(50_000, 64, gpu=False) == "pyramid-medium"
    assert choose_preset(300, 64, gpu=True) == choose_preset(10_001, 40, gpu=True) == "pyramid-large"
    assert choose_preset(10_001, 64, gpu=True) == "pyramid"
    assert choose_preset(300, 224, gpu=True) == "pyramid-224"


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


@pytest.mark.parametrize("preset", ["oriented-small", "oriented", "paper-small", "pyramid-small", "pyramid-large"])
def test_named_networks_that_are_slow_on_large_images_get_small_ones(preset):
    assert default_size_limit(Architecture.parse(preset), gpu=True) == MAX_DEFAULT_SIZE


@pytest.mark.parametrize("architecture", [None, Architecture.parse("pyramid-224")])
@pytest.mark.parametrize("gpu", [False, True])
def test_other_networks_get_larger_images_the_fewer_there_are(architecture, gpu):
    limit = default_size_limit(architecture, gpu)
    sides = [limit(images) for images in (1, 600, 601, 2_000, 2_001, 10_001, 30_001)]
    assert sides == sorted(sides, reverse=True)
    assert (sides[0], sides[-1]) == (224, 64)


def test_defaults_for_large_images_are_suited_to_them():
    for gpu in (False, True):
        preset = Architecture.parse(choose_preset(300, 65, gpu))
        assert preset.num_coarsenings >= LARGE_IMAGE_COARSENINGS
        assert callable(default_size_limit(preset, gpu))


@pytest.mark.parametrize("images", [1, 500, 501, 1_001, 10_001])
@pytest.mark.parametrize("side", [3, 7, 8, 28, 40, 41, 64, 65, 224])
def test_a_faster_network_is_the_default_for_few_images_of_this_size(images, side):
    default, faster = choose_preset(images, side, gpu=False), faster_preset(images, side)
    assert faster != default
    assert faster in ("", choose_preset(1, side, gpu=False))


@pytest.mark.parametrize("side", [7, 28, 64, 224])
@pytest.mark.parametrize(("images", "from_random"), [(300, False), (300, True), (1_001, True)])
def test_only_an_accurate_network_on_a_cpu_has_fewer_epochs(side, images, from_random):
    is_another = choose_preset(images, side, gpu=True) != choose_preset(images, side, gpu=False)
    assert is_another == (side > 7)
    needs_all = from_random and images <= ALL_EPOCHS_IMAGES
    share = epochs_share(images, side, accurate=True, gpu=False, from_random=from_random)
    assert share == (CPU_EPOCHS if is_another and not needs_all else 1)
    for accurate, gpu in ((True, True), (False, True), (False, False)):
        assert epochs_share(images, side, accurate, gpu, from_random) == 1


@pytest.mark.parametrize("name", ["acurate", "Fast", "fas"])
def test_a_name_that_resembles_a_default_is_an_error_that_suggests_it(name):
    with pytest.raises(ValueError, match=rf"got '{name}': did you mean '(fast|accurate)'"):
        named_default(name)


@pytest.mark.parametrize("name", [*PRESETS, "SC[2,2]-S[2]", "", Architecture.parse("paper"), None, "auto"])
def test_presets_and_layers_are_no_names_of_defaults(name):
    assert named_default(name) is None
