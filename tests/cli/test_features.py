import json

import numpy as np
import pytest
import torch
from PIL import Image

from tigranet import TIGraNet


def test_the_rows_are_the_features_of_the_network(tigranet, tmp_path, photos):
    import pyarrow.parquet as pq

    net = TIGraNet("SC[2,2]-S[2]", 2, image_size=28)
    net.save_pretrained(tmp_path / "m")
    out = tmp_path / "out.parquet"
    tigranet("features", tmp_path / "m", photos, "--parquet", out)
    table = pq.read_table(out)
    assert (table.num_rows, table.num_columns) == (40, 1 + 2 * 2 * 3)
    _, out, _ = tigranet("features", tmp_path / "m", photos / "digit 1", "--json")
    row = json.loads(out.splitlines()[0])
    image = torch.from_numpy(np.asarray(Image.open(row["path"])).copy())[None, None] / 255
    assert row["map1_variance2"] == pytest.approx(net.features(image)[0, -1].item(), rel=1e-4)
