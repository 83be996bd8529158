import subprocess
import sys

import pytest

from tigranet.model_folder import is_begun_training, is_model_folder


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ([], False),
        (["config.json"], False),
        (["model.safetensors"], False),
        (["config.json", "model.safetensors"], True),
        (["checkpoints/last.ckpt"], True),
        (["checkpoints/best.ckpt"], False),
        (["last.ckpt"], False),
    ],
)
def test_a_saved_model_and_an_unfinished_training_are_recognised(tmp_path, files, expected):
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    assert is_model_folder(tmp_path) is expected


def test_folders_with_the_names_of_files_are_no_model(tmp_path):
    """A class of images that has such sub-folders stays a class."""
    for name in ("config.json", "model.safetensors", "checkpoints/last.ckpt"):
        (tmp_path / name).mkdir(parents=True)
    assert not is_model_folder(tmp_path)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ([], True),
        (["checkpoints/best.ckpt"], True),
        (["checkpoints/best.ckpt", "image.png"], False),
        (["checkpoints/image.png"], False),
        (["checkpoints/folder/image.png"], False),
    ],
)
def test_the_folder_of_a_training_that_was_stopped_early_is_recognised(tmp_path, files, expected):
    (tmp_path / "checkpoints").mkdir()
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    assert is_begun_training(tmp_path) is expected


def test_a_folder_that_does_not_exist_is_no_model(tmp_path):
    assert not is_model_folder(tmp_path / "none")
    assert not is_begun_training(tmp_path / "none")


def test_the_import_is_light():
    code = "import sys, tigranet.model_folder; print({'torch', 'huggingface_hub', 'numpy'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "set()\n"
