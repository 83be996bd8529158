"""How features with orientations move when the image is rotated."""

import torch

from tigranet.testing import on_nodes


def quarter_turn(orientations, features, height, width, turns=1):
    """The action of quarter turns on features: the maps rotate, and the orientations are permuted."""

    def move(z):
        rotated = on_nodes(lambda x: torch.rot90(x, turns, (-2, -1)), height, width)(z)
        return rotated.unflatten(1, (orientations, features)).roll(turns * orientations // 4, 1).flatten(1, 2)

    return move


def rotate_plain(height, width, turns):
    """The action of quarter turns on maps without orientations."""
    return on_nodes(lambda x: torch.rot90(x, turns, (-2, -1)), height, width)
