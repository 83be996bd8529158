import os
import stat
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from tigranet.atomic_files import atomic_binary_write, atomic_write, check_writable, replace_file


def write(path, text="new content"):
    with atomic_write(path) as file:
        file.write(text)


@pytest.fixture
def null_device(tmp_path):
    """A device of its own like /dev/null, which a wrong program would delete."""
    path = tmp_path / "null"
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        path.write_text("a device may also be on a file system that forbids devices")
    except OSError as error:
        pytest.skip(f"this user cannot create devices: {error}")
    return path


@contextmanager
def read_pipe(path):
    """Create a named pipe, and collect what is written to it in a list."""
    os.mkfifo(path)
    parts = []
    reader = threading.Thread(target=lambda: parts.append(path.read_bytes()), daemon=True)
    reader.start()
    yield parts
    reader.join(timeout=20)


@contextmanager
def umask(mask):
    old = os.umask(mask)
    try:
        yield
    finally:
        os.umask(old)


def test_the_file_appears_only_when_it_is_complete(tmp_path):
    with atomic_write(tmp_path / "out.txt") as file:
        file.write("first part")
        assert not (tmp_path / "out.txt").exists()
        file.write(" and second part")
    assert (tmp_path / "out.txt").read_text() == "first part and second part"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("link", [False, True])
def test_after_an_error_only_the_old_file_exists(tmp_path, link):
    (tmp_path / "out.csv").write_text("old content")
    path = tmp_path / "link" if link else tmp_path / "out.csv"
    if link:
        path.symlink_to("out.csv")
    before = sorted(tmp_path.iterdir())

    def fail():
        with atomic_write(path) as file:
            file.write("first part")
            raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space left"):
        fail()
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "out.csv").read_text() == "old content"


def test_the_error_names_a_missing_parent_folder(tmp_path):
    with pytest.raises(NotADirectoryError, match=r"missing/x.*missing'"), atomic_write(tmp_path / "missing" / "x"):
        pass


def test_a_folder_cannot_be_written_as_a_file(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    for path in (tmp_path, tmp_path / "link"):
        with pytest.raises(IsADirectoryError, match=path.name):
            check_writable(path)


def test_a_read_only_folder_is_reported_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(PermissionError, match=r"out\.txt.*may not write"):
        check_writable(tmp_path / "out.txt")
    (tmp_path / "out.txt").touch()
    with pytest.raises(PermissionError, match=r"out\.txt.*may not write"):
        check_writable(tmp_path / "out.txt")


def test_a_device_is_written_and_stays(null_device):
    number = null_device.stat().st_rdev
    write(null_device)
    with atomic_binary_write(null_device) as file:
        file.write(b"bytes")
    staged = null_device.with_name("staged")
    staged.write_text("text")
    replace_file(staged, null_device)
    assert stat.S_ISCHR(null_device.stat().st_mode)
    assert null_device.stat().st_rdev == number
    assert list(null_device.parent.iterdir()) == [null_device]


def test_a_link_to_a_device_stays_too(null_device):
    link = null_device.with_name("link")
    link.symlink_to("null")
    write(link)
    assert link.is_symlink()
    assert stat.S_ISCHR(null_device.stat().st_mode)


def test_a_named_pipe_receives_the_content_and_stays(tmp_path):
    with read_pipe(tmp_path / "pipe") as parts:
        write(tmp_path / "pipe", "line\n")
    assert parts == [b"line\n"]
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@pytest.mark.parametrize("name", ["/dev/stdout", "/proc/self/fd/1", "/dev/fd/1"])
@pytest.mark.parametrize("destination", ["pipe", "file", "appended"])
def test_standard_output_is_written_as_any_program_writes_it(tmp_path, name, destination):
    script = f"""
from pathlib import Path
from tigranet.atomic_files import atomic_write
with atomic_write(Path({name!r})) as file:
    file.write("row")
"""
    command = [sys.executable, "-c", script]
    if destination == "pipe":
        assert subprocess.run(command, capture_output=True, check=True).stdout == b"row"
        return
    path = tmp_path / "out"
    path.write_text("earlier ")
    inode = path.stat().st_ino
    with path.open("a" if destination == "appended" else "w") as file:
        subprocess.run(command, stdout=file, check=True)
    assert path.read_text() == ("earlier row" if destination == "appended" else "row")
    assert path.stat().st_ino == inode


@pytest.mark.parametrize("relative", [False, True])
def test_links_stay_and_the_file_at_their_end_is_replaced(tmp_path, relative):
    (tmp_path / "data").mkdir()
    target = tmp_path / "data" / "target"
    target.write_text("old")
    (tmp_path / "second").symlink_to("data/target" if relative else target)
    (tmp_path / "first").symlink_to("second" if relative else tmp_path / "second")
    write(tmp_path / "first")
    assert (tmp_path / "first").is_symlink()
    assert (tmp_path / "second").is_symlink()
    assert not target.is_symlink()
    assert target.read_text() == "new content"
    assert len(list(tmp_path.rglob("*"))) == 4


def test_a_link_to_a_file_that_does_not_exist_creates_it(tmp_path):
    (tmp_path / "link").symlink_to("new")
    write(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "new").read_text() == "new content"


def test_a_link_into_a_missing_folder_is_an_error_that_names_it(tmp_path):
    (tmp_path / "link").symlink_to("missing/file")
    with pytest.raises(NotADirectoryError, match=r"link'.*missing'"):
        write(tmp_path / "link")


def test_links_in_a_circle_are_an_error(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    (tmp_path / "self").symlink_to("self")
    for name in ("a", "self"):
        with pytest.raises(OSError, match=f"{name}'.*circle"):
            write(tmp_path / name)


def test_other_names_of_a_file_keep_the_old_content(tmp_path):
    (tmp_path / "a").write_text("old")
    os.link(tmp_path / "a", tmp_path / "b")
    write(tmp_path / "a")
    assert ((tmp_path / "a").read_text(), (tmp_path / "b").read_text()) == ("new content", "old")


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664, 0o755])
def test_permissions_of_a_replaced_file_stay(tmp_path, mode):
    (tmp_path / "a").touch()
    (tmp_path / "a").chmod(mode)
    with umask(0o077):
        write(tmp_path / "a")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == mode


def test_nobody_may_read_the_new_content_of_a_private_file(tmp_path):
    (tmp_path / "a").touch(mode=0o600)
    with atomic_write(tmp_path / "a"):
        modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {0o600}


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_has_the_permissions_that_the_user_chose_for_new_files(tmp_path, mask, mode):
    with umask(mask):
        write(tmp_path / "a")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == mode


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="only the administrator may give files away")
def test_the_owner_of_a_replaced_file_stays(tmp_path):
    (tmp_path / "a").touch()
    os.chown(tmp_path / "a", 12345, 54321)
    write(tmp_path / "a")
    assert ((tmp_path / "a").stat().st_uid, (tmp_path / "a").stat().st_gid) == (12345, 54321)


def deny_folder(monkeypatch, folder):
    """Let a folder look as if the user may not write to it, which the administrator always may."""
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != str(folder) and access(path, mode))


def test_a_file_in_a_folder_without_permission_is_overwritten(tmp_path, monkeypatch):
    (tmp_path / "a").write_text("old")
    inode = (tmp_path / "a").stat().st_ino
    deny_folder(monkeypatch, tmp_path)

    def rename(*_):
        raise PermissionError("not permitted")

    monkeypatch.setattr(os, "replace", rename)
    write(tmp_path / "a")
    assert (tmp_path / "a").read_text() == "new content"
    assert (tmp_path / "a").stat().st_ino == inode
    assert list(tmp_path.iterdir()) == [tmp_path / "a"]
    with pytest.raises(PermissionError, match="new"):
        write(tmp_path / "new")


def test_a_mounted_file_that_cannot_be_replaced_is_overwritten(tmp_path, monkeypatch):
    (tmp_path / "a").write_text("a longer old content")

    def rename(*_):
        raise OSError(16, "Device or resource busy")

    monkeypatch.setattr(os, "replace", rename)
    write(tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == "new"
    with pytest.raises(OSError, match="busy"):
        write(tmp_path / "b")
    assert list(tmp_path.iterdir()) == [tmp_path / "a"]


def test_a_long_file_name_can_be_written(tmp_path):
    write(tmp_path / ("x" * 255))
    assert len(list(tmp_path.iterdir())) == 1


def test_a_complete_file_is_moved_through_links(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "target").write_text("old")
    (tmp_path / "folder" / "target").chmod(0o640)
    (tmp_path / "link").symlink_to("folder/target")
    (tmp_path / "complete").write_text("new")
    replace_file(tmp_path / "complete", tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "folder" / "target").read_text() == "new"
    assert stat.S_IMODE((tmp_path / "folder" / "target").stat().st_mode) == 0o640
    assert not (tmp_path / "complete").exists()


def test_a_complete_file_on_another_disk_is_copied_beside_the_old_one(tmp_path):
    try:
        is_other_disk = os.stat("/dev/shm").st_dev != tmp_path.stat().st_dev and os.access("/dev/shm", os.W_OK)
    except FileNotFoundError:
        is_other_disk = False
    if not is_other_disk:
        pytest.skip("there is no second disk")
    (tmp_path / "a").write_text("old")
    with tempfile.NamedTemporaryFile("w", dir="/dev/shm", delete=False) as file:
        file.write("new")
    complete = Path(file.name)
    replace_file(complete, tmp_path / "a")
    assert (tmp_path / "a").read_text() == "new"
    assert not complete.exists()
    assert list(tmp_path.iterdir()) == [tmp_path / "a"]
