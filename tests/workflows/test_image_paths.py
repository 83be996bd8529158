from pathlib import Path

import pytest

from tigranet.data import UnreadableFile
from tigranet.workflows.image_paths import expand_paths, require_readable


def test_folders_stand_for_their_images(folder):
    assert len(list(expand_paths(folder))) == 40
    file = folder / "a" / "003.png"
    assert list(expand_paths([str(file), folder / "b"]))[:2] == [file, folder / "b" / "000.png"]


def test_missing_paths_are_named_at_once(folder, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"one.*two"):
        expand_paths([tmp_path / "one", folder, tmp_path / "two"])


def test_an_error_ends_results_without_a_readable_file():
    unreadable = UnreadableFile(Path("x.png"), "the file is empty")
    assert list(require_readable([unreadable, 1])) == [unreadable, 1]
    with pytest.raises(ValueError, match="no images"):
        list(require_readable([]))
    results = require_readable([unreadable])
    assert next(results) is unreadable
    with pytest.raises(ValueError, match="none of the images"):
        next(results)
