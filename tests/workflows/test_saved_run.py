import json

from tigranet.data import REGISTRY
from tigranet.data.leakage import content_hash
from tigranet.workflows.saved_run import SavedRun, content_hashes, write_training_file


def test_a_folder_without_a_record_has_the_default_run(tmp_path):
    assert SavedRun.read(tmp_path) == SavedRun.read("paper-mnist-rot") == SavedRun()


def test_what_is_written_is_read(tmp_path, small):
    record = {"seed": 3, "group": "object", "train_images": 9, "recipe": {"epochs": 2}, "data": "p/", "other": 1}
    write_training_file(tmp_path, record | content_hashes("photos/", small))
    run = SavedRun.read(tmp_path)
    assert (run.seed, run.group, run.train_images, run.recipe) == (3, "object", 9, {"epochs": 2})
    assert run.data == "p/"
    assert run.training_hashes == {content_hash(image) for image in small.train.images}
    assert run.test_hash == content_hash(small.test.images)
    assert json.loads((tmp_path / "training.json").read_text())["other"] == 1


def test_a_named_data_set_needs_no_hashes(small):
    assert content_hashes("mnist-012", small) == {}
    assert content_hashes(small, small).keys() == content_hashes("./mnist-012", small).keys() == {"seen", "tested"}


def test_the_split_is_described(small):
    run = SavedRun(seed=3, group="object")
    assert run.describe_split("mnist-012") == f"{REGISTRY['mnist-012'].about}; drawn by seed 3"
    for words in ("15% of each class", "seed 3", "object"):
        assert words in run.describe_split("photos/")
    assert "seed" not in run.describe_split(small)
