from tigranet.architecture import GB, GC, LC, PRESETS, Architecture, D
from tigranet.reproduction.architecture_variants import without_coarsening, without_residuals

LAYERS = "LC[4,5]-GB[3]-D-GC[8,3]-GB[5]-GB[5]-D-GC[16,3]-MO[7]-S[0]-FC[3]"


def layers(architecture, kinds):
    return [layer for layer in Architecture.parse(architecture).layers if isinstance(layer, kinds)]


def test_without_coarsening_all_levels_have_the_features_of_the_first():
    result = without_coarsening(LAYERS)
    assert result == "LC[4,5]-GB[3]-GC[4,3]-GB[5]-GB[5]-GC[4,3]-MO[7]-S[0]-FC[3]"
    assert without_coarsening(result) == result


def test_without_residuals_every_block_is_two_convolutions_of_as_many_features():
    assert without_residuals(LAYERS) == (
        "LC[4,5]-GC[4,3]-GC[4,3]-D-GC[8,3]-GC[8,5]-GC[8,5]-GC[8,5]-GC[8,5]-D-GC[16,3]-MO[7]-S[0]-FC[3]"
    )


def test_presets_can_be_changed():
    for preset in (name for name in PRESETS if Architecture.parse(name).has_group_convolutions):
        assert layers(preset, D)
        assert not layers(without_coarsening(preset), D)
        assert len({layer.features for layer in layers(without_coarsening(preset), LC | GC)}) == 1
        blocks, convolutions = len(layers(preset, GB)), len(layers(preset, GC))
        assert len(layers(without_residuals(preset), GC)) == convolutions + 2 * blocks
