import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from images import fill, save
from tigranet.data.find_images import find_folders, find_images, image_files, unusable_reason
from tigranet.data.folder_index import index_folder
from tigranet.data.letterbox import UnreadableFile
from tigranet.data.user_data import load_user_data

needs_unix = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes and links are those of Unix")
pytestmark = needs_unix


def picture(path):
    save(path, np.zeros((4, 4), np.uint8))


def names_and_reasons(folder):
    """Return the names of the images, and the reasons by the names of what cannot be used."""
    items = list(find_images(folder))
    images = [item.name for item in items if isinstance(item, Path)]
    return images, {item.path.name: item.reason for item in items if isinstance(item, UnreadableFile)}


@pytest.fixture
def denied(monkeypatch):
    """Refuse to list some folders, also to root. A function of the folders."""
    scandir = os.scandir

    def deny(*folders):
        def refusing(path):
            if Path(path) in folders:
                raise PermissionError(13, "Permission denied", str(path))
            return scandir(path)

        monkeypatch.setattr(os, "scandir", refusing)

    return deny


def test_images_are_sorted_by_name_within_each_folder(tmp_path):
    for name in ("c.png", "a.JPG", "b/2.tif", "b/1.png", ".hidden.png", ".hidden/x.png"):
        save(tmp_path / name, np.zeros((4, 4), np.uint8))
    (tmp_path / "notes.txt").write_text("no image")
    expected = [tmp_path / name for name in ("a.JPG", "b/1.png", "b/2.tif", "c.png")]
    assert list(find_images(tmp_path)) == list(image_files(tmp_path)) == expected


@pytest.mark.parametrize("suffix", ["", ".png"])
def test_pipes_sockets_devices_and_broken_links_are_named(tmp_path, suffix, monkeypatch):
    picture(tmp_path / "good.png")
    os.mkfifo(tmp_path / f"pipe{suffix}")
    (tmp_path / f"device{suffix}").symlink_to("/dev/zero")
    (tmp_path / f"loop{suffix}").symlink_to(f"loop{suffix}")
    (tmp_path / f"broken{suffix}").symlink_to("nowhere")
    monkeypatch.chdir(tmp_path)  # the path of a socket is limited to 108 characters
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"socket{suffix}")
        images, reasons = names_and_reasons(tmp_path)
    assert images == ["good.png"]
    assert reasons.keys() == {f"{name}{suffix}" for name in ("pipe", "device", "loop", "broken", "socket")}
    for name, words in (
        ("pipe", "named pipe"),
        ("device", "character device"),
        ("loop", "symbolic links"),
        ("broken", "does not exist"),
        ("socket", "socket"),
    ):
        assert words in reasons[f"{name}{suffix}"]


def test_loops_of_links_end_and_every_image_is_found_once(tmp_path):
    for name in ("a/1.png", "a/deep/2.png", "b/3.png"):
        picture(tmp_path / "root" / name)
    for link, target in (("a/self", "."), ("a/deep/up", ".."), ("a/b", "../b"), ("b/a", "../a"), ("b/top", "..")):
        (tmp_path / "root" / link).symlink_to(target)
    images, reasons = names_and_reasons(tmp_path / "root")
    assert sorted(images) == ["1.png", "2.png", "3.png"]
    assert {"self", "up", "top"} <= reasons.keys()
    assert all("once" in reason for reason in reasons.values())


def test_links_that_would_give_very_many_paths_are_followed_once(tmp_path):
    """Each of 25 folders has two links to the next, so there are 2^25 paths to the image."""
    picture(tmp_path / "25" / "x.png")
    for number in range(25):
        (tmp_path / str(number)).mkdir()
        for name in ("a", "b"):
            (tmp_path / str(number) / name).symlink_to(f"../{number + 1}")
    items = list(find_images(tmp_path / "0"))
    assert sum(isinstance(item, Path) for item in items) == 1
    assert len(items) == 1 + 25


def test_a_link_to_a_folder_elsewhere_is_followed(tmp_path):
    picture(tmp_path / "elsewhere" / "x.png")
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "link").symlink_to(tmp_path / "elsewhere")
    assert list(find_images(tmp_path / "root")) == [tmp_path / "root" / "link" / "x.png"]


def test_a_link_to_a_folder_above_is_not_followed(tmp_path):
    picture(tmp_path / "a" / "x.png")
    picture(tmp_path / "b" / "y.png")
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    images, reasons = names_and_reasons(tmp_path / "a")
    assert images == ["x.png"]
    assert str(tmp_path) in reasons["up"]


def test_a_folder_that_cannot_be_listed_does_not_end_the_search(tmp_path, denied):
    fill(tmp_path, {"a": 2, "b": 2, "c": 2})
    denied(tmp_path / "b")
    items = list(find_images(tmp_path))
    assert items[2] == UnreadableFile(tmp_path / "b", "Permission denied")
    assert len(items) == 5
    denied(tmp_path)
    assert list(find_images(tmp_path)) == [UnreadableFile(tmp_path, "Permission denied")]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("mode", [0o700, 0o711, 0o744])
def test_an_unprivileged_user_gets_the_reason_for_a_private_folder(mode):
    """Folders without the right to list them, and without the right to examine what is in them."""
    with tempfile.TemporaryDirectory() as name:  # the folders of pytest are private
        folder = Path(name)
        folder.chmod(0o755)
        fill(folder, {"a": 2, "b": 2, "c": 2})
        (folder / "b").chmod(mode)
        os.seteuid(65534)
        try:
            items = list(find_images(folder))
            class_names = index_folder(folder).class_names
        finally:
            os.seteuid(0)
    skipped = [item for item in items if isinstance(item, UnreadableFile)]
    if mode == 0o744:  # the names can be listed, and each file is reported when it is read
        assert (len(items), len(skipped), class_names) == (6, 0, ("a", "b", "c"))
    else:
        assert skipped == [UnreadableFile(folder / "b", "Permission denied")]
        assert (len(items), class_names) == (5, ("a", "c"))


def test_what_disappears_during_the_search_is_named(tmp_path):
    fill(tmp_path, {"a": 1, "b": 1, "c": 1})
    items = find_images(tmp_path)
    first = next(items)
    (tmp_path / "b" / "000.png").unlink()
    (tmp_path / "b").rmdir()
    assert first == tmp_path / "a" / "000.png"
    assert [item.path.name if isinstance(item, UnreadableFile) else item.parent.name for item in items] == ["b", "c"]
    assert "No such file" in next(iter(find_images(tmp_path / "b"))).reason


def test_an_error_in_the_middle_of_a_list_keeps_what_was_listed(tmp_path, monkeypatch):
    fill(tmp_path, {"a": 3})
    scandir = os.scandir

    class Failing:
        def __init__(self, path):
            self.entries = scandir(path)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.entries.close()

        def __iter__(self):
            yield next(self.entries)
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "scandir", Failing)
    reason, image = find_images(tmp_path / "a")
    assert reason == UnreadableFile(tmp_path / "a", "Input/output error")
    assert image.suffix == ".png"


def test_a_tree_deeper_than_the_recursion_limit_is_searched_and_too_long_paths_are_named(tmp_path):
    script = (
        "import os\n"
        "for number in range(1130):\n"
        "    name = 'd' if number < 1100 else 'd' * 200\n"
        "    os.mkdir(name)\n"
        "    os.chdir(name)\n"
        "    if number == 1099: open('x.png', 'w').close()\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    try:
        images, reasons = names_and_reasons(tmp_path)
    finally:
        subprocess.run(["rm", "-rf", str(tmp_path / "d")], check=True)
    assert images == ["x.png"]
    assert list(reasons.values()) == ["File name too long"]


def test_file_systems_without_inode_numbers(tmp_path, monkeypatch):
    fill(tmp_path, {"a": 2, "b": 2})
    (tmp_path / "b" / "top").symlink_to("..")
    stat = os.stat

    def without_inode(path, *arguments, **options):
        return os.stat_result((*stat(path, *arguments, **options)[:1], 0, *stat(path, *arguments, **options)[2:]))

    monkeypatch.setattr(os, "stat", without_inode)
    images, reasons = names_and_reasons(tmp_path)
    assert len(images) == 4
    assert list(reasons) == ["top"]


def test_skipped_items_are_reported_beside_the_images(tmp_path):
    fill(tmp_path, {"a": 2})
    os.mkfifo(tmp_path / "a" / "pipe.png")
    skipped = []
    assert len(list(image_files(tmp_path, skipped.append))) == len(list(image_files(tmp_path))) == 2
    assert [item.path for item in skipped] == [tmp_path / "a" / "pipe.png"]


def test_folders_that_cannot_be_classes_are_reported(tmp_path, denied):
    fill(tmp_path, {"a": 1, "b": 1, "lost+found": 1, ".hidden": 1})
    (tmp_path / "notes.txt").write_text("neither a folder nor special")
    os.mkfifo(tmp_path / "pipe")
    for link, target in (("self", "self"), ("here", "."), ("above", ".."), ("broken", "nowhere"), ("c", "a")):
        (tmp_path / link).symlink_to(target)
    denied(tmp_path / "lost+found")
    skipped = []
    assert [path.name for path in find_folders(tmp_path, skipped.append)] == ["a", "b", "c"]
    assert {item.path.name for item in skipped} == {"above", "broken", "here", "lost+found", "pipe", "self"}
    denied(tmp_path)
    with pytest.raises(OSError, match=f"{tmp_path.name}.*Permission denied"):
        find_folders(tmp_path)


def test_only_files_and_folders_are_usable(tmp_path):
    picture(tmp_path / "x.png")
    assert unusable_reason(tmp_path) is unusable_reason(tmp_path / "x.png") is None
    assert "No such file" in unusable_reason(tmp_path / "y.png")
    assert "device" in unusable_reason(Path("/dev/null"))
    assert "too long" in unusable_reason(tmp_path / ("x" * 300))


@pytest.mark.parametrize("part", ["", "train"])
def test_the_index_of_a_folder_names_what_it_skips_once(tmp_path, denied, part):
    fill(tmp_path / part, {"a": 2, "b": 2})
    (tmp_path / part / "b" / "private").mkdir()
    for place in ("pipe", "a/pipe.png"):
        os.mkfifo(tmp_path / part / place)
    (tmp_path / part / "loop").symlink_to("loop")
    denied(tmp_path / part / "b" / "private")
    index = index_folder(tmp_path)
    assert index.class_names == ("a", "b")
    assert len(index.paths) == 4
    skipped = sorted(item.path.relative_to(tmp_path / part).as_posix() for item in index.skipped)
    assert skipped == ["a/pipe.png", "b/private", "loop", "pipe"]


def test_a_data_set_has_the_skipped_items_among_the_unreadable_files(tmp_path):
    fill(tmp_path, {"a": 10, "b": 10})
    os.mkfifo(tmp_path / "a" / "pipe.png")
    (tmp_path / "b" / "broken.png").touch()
    data, unreadable = load_user_data(tmp_path)
    assert [item.path.name for item in unreadable] == ["pipe.png", "broken.png"]
    assert sum(len(part.labels) for part in (data.train, data.validation, data.test)) == 20


@pytest.mark.parametrize("name", ["table.csv", "arrays.npz"])
def test_a_named_pipe_in_place_of_the_data_is_refused(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(ValueError, match=f"{name}' is a named pipe"):
        load_user_data(tmp_path / name)
