from tigranet import Architecture, TIGraNet
from tigranet.training import Recipe
from tigranet.workflows.choose_recipe import choose_recipe


def test_it_is_the_recipe_of_the_network_with_the_overrides(small):
    for layers in ("paper-small", "paper", "MC[2,1]-S[1]"):
        expected = Recipe.for_network(TIGraNet(layers, 3), 30, seed=4, zoom=0.1)
        assert choose_recipe(small, Architecture.parse(layers), seed=4, zoom=0.1) == expected
