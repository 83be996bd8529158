import os
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


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes and links are those of Unix")
def test_what_is_neither_a_file_nor_a_folder_is_passed_on_with_the_reason(folder, tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "loop.png").symlink_to("loop.png")
    (tmp_path / "broken.png").symlink_to("nowhere.png")
    bad = [tmp_path / "pipe.png", Path("/dev/zero"), tmp_path / "loop.png", tmp_path / "broken.png"]
    too_long = tmp_path / ("x" * 300)
    items = list(expand_paths([*bad, too_long, folder / "a" / "000.png"]))
    assert [item.path for item in items[:-1]] == [*bad, too_long]
    assert items[-1] == folder / "a" / "000.png"


def test_a_path_below_a_file_and_one_with_a_nul_are_missing(folder):
    for path in (folder / "a" / "000.png" / "x.png", "a\0b.png"):
        with pytest.raises(FileNotFoundError, match="there is no file or folder"):
            expand_paths(path)


def test_a_folder_that_cannot_be_listed_does_not_stop_the_others(folder, monkeypatch):
    scandir = os.scandir

    def refuse(path):
        if Path(path) == folder / "a":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    for paths in (folder, [folder / "a", folder / "b"]):
        first, *others = expand_paths(paths)
        assert first == UnreadableFile(folder / "a", "Permission denied")
        assert len(others) == 20


def test_an_error_ends_results_without_a_readable_file():
    unreadable = UnreadableFile(Path("x.png"), "the file is empty")
    assert list(require_readable([unreadable, 1])) == [unreadable, 1]
    with pytest.raises(ValueError, match="no images"):
        list(require_readable([]))
    results = require_readable([unreadable])
    assert next(results) is unreadable
    with pytest.raises(ValueError, match="none of the images"):
        next(results)
