import inspect
import json

from images import fill
from tigranet.cli.shard import shard
from tigranet.data.shards.shard_files import is_shard_folder
from tigranet.workflows.shard_images import IMAGES_PER_SHARD


def test_the_default_number_of_images_is_that_of_the_function():
    """The command does not import the function until it runs."""
    assert inspect.signature(shard).parameters["images_per_shard"].default == IMAGES_PER_SHARD


def test_the_command_lists_unreadable_files_and_continues(tigranet, tmp_path):
    photos = fill(tmp_path / "photos", {"a": 4, "b": 4}, size=(8, 8))
    (photos / "b" / "bad.png").write_bytes(b"")
    arguments = ["data", "shard", photos, "-o", tmp_path / "shards", "--images-per-shard", 4, "--workers", 1]
    code, out, err = tigranet(*arguments)
    assert code == 0
    assert "8 images of 2 classes in 3 shards: 8x8 pixels, grey" in out
    assert "b/bad.png" in err
    assert is_shard_folder(tmp_path / "shards")
    values = json.loads(tigranet(*arguments, "--json").out)
    assert (values["images"], values["shards"], values["resumed_shards"]) == (8, 3, 3)
    assert [entry["path"] for entry in values["unreadable"]] == ["b/bad.png"]
    code, _, err = tigranet(*arguments, "--size", 9)
    assert code == 1
    assert "9" in err
