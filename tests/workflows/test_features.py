import os

import numpy as np
import pytest
import torch
from PIL import Image

from tigranet import TIGraNet
from tigranet.workflows.features import ImageFeatures, features, stream_features


def test_the_table_has_the_statistics_of_the_network(folder, model):
    (folder / "b" / "broken.png").touch()
    result = features(model, [folder])
    assert result.values.shape == (40, len(result.names)) == (40, 2 * 2 * 3)
    assert len(result.paths) == 40
    assert [file.path.name for file in result.unreadable_files] == ["broken.png"]
    image = torch.from_numpy(np.asarray(Image.open(result.paths[7])).copy())[None, None] / 255
    torch.testing.assert_close(result.values[7:8], TIGraNet.from_pretrained(model).features(image).detach())


def test_features_come_one_after_the_other(folder, model):
    names, stream = stream_features(model, folder / "a" / "000.png")
    (row,) = stream
    assert isinstance(row, ImageFeatures)
    assert row.path == folder / "a" / "000.png"
    assert len(row.values) == len(names)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are those of Unix")
def test_a_named_pipe_and_a_loop_of_links_are_listed(folder, model):
    os.mkfifo(folder / "a" / "pipe.png")
    (folder / "b" / "loop").symlink_to("..")
    result = features(model, folder)
    assert len(result.paths) == len(result.values) == 40
    assert [file.path.name for file in result.unreadable_files] == ["pipe.png", "loop"]
