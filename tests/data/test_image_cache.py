import errno
import hashlib
import io
import json
import os
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import torch

from images import fill, save
from tigranet.data import cache_locks, image_cache, image_files
from tigranet.data.image_cache import DecodeCacheWarning, decode_images
from tigranet.data.letterbox import UnreadableFile, read_letterboxed


@pytest.fixture
def files(tmp_path):
    """Eight images and, in position 2, an empty file."""
    fill(tmp_path / "photos", {"a": 5, "b": 4})
    (tmp_path / "photos" / "a" / "002.png").write_bytes(b"")
    return list(image_files(tmp_path / "photos"))


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache folder."""
    monkeypatch.setenv("TIGRANET_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "decoded"


def raise_full(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


def fail_to_decode(*_):
    pytest.fail("decoded again")


def test_the_images_are_those_of_the_files(files):
    images, positions, unreadable = decode_images(files, 10, color=False)
    expected = [image for _, image in read_letterboxed(files, 10, color=False)]
    assert unreadable == [UnreadableFile(files[2], "the file is empty")]
    assert positions.tolist() == [0, 1, 3, 4, 5, 6, 7, 8]
    assert torch.equal(images, torch.stack([image for image in expected if not isinstance(image, UnreadableFile)]))


def test_the_second_time_no_file_is_decoded(files, monkeypatch):
    first, *_ = decode_images(files, 10, color=False)
    monkeypatch.setattr(image_cache, "read_letterboxed", fail_to_decode)
    images, positions, unreadable = decode_images(files, 10, color=False)
    assert torch.equal(images, first)
    assert (len(positions), len(unreadable)) == (8, 1)


def test_a_changed_file_and_another_size_are_decoded_again(files):
    first, *_ = decode_images(files, 10, color=False)
    assert decode_images(files, 11, color=False)[0].shape[2:] == (11, 11)
    files[0].write_bytes(files[-1].read_bytes())
    os.utime(files[0], ns=(1, 1))
    assert not torch.equal(decode_images(files, 10, color=False)[0], first)


@pytest.mark.parametrize("first", ["grey", "colour"])
@pytest.mark.parametrize("place", ["cache", "temporary file", "memory"])
def test_grey_images_among_colour_images_are_repeated_in_three_channels(tmp_path, cache, monkeypatch, first, place):
    rng = np.random.default_rng(0)
    kinds = ("grey", "grey", "colour", "grey", "colour")
    paths = [tmp_path / f"{number}.png" for number in range(len(kinds))]
    shapes = [(7, 9) if kind == first else (7, 9, 3) for kind in kinds]
    for path, shape in zip(paths, shapes, strict=True):
        save(path, rng.integers(0, 256, shape, dtype=np.uint8))
    if place != "cache":
        monkeypatch.setattr(image_cache, "_decode_into", raise_full)
    if place == "memory":
        monkeypatch.setattr(tempfile, "TemporaryFile", raise_full)
    with nullcontext() if place == "cache" else pytest.warns(DecodeCacheWarning):
        images, positions, _ = decode_images(paths, 6, color=True)
    assert positions.tolist() == list(range(len(paths)))
    expected = [image for _, image in read_letterboxed(paths, 6, color=True)]
    assert [len(image) for image in expected] == [1 if len(shape) == 2 else 3 for shape in shapes]
    assert torch.equal(images, torch.stack([image.expand(3, -1, -1) for image in expected]))
    if place == "cache":
        monkeypatch.setattr(image_cache, "read_letterboxed", fail_to_decode)
        assert torch.equal(decode_images(paths, 6, color=True)[0], images)


def test_other_numbers_of_channels_are_not_mixed(tmp_path, cache):
    import tifffile

    for number, shape in enumerate([(8, 8), (5, 8, 8)]):
        tifffile.imwrite(tmp_path / f"{number}.tiff", np.zeros(shape, np.uint8), photometric="minisblack")
    with pytest.raises(ValueError, match=r"1 in '.*0\.tiff' and 5 in '.*1\.tiff'.*--grey"):
        decode_images([tmp_path / "0.tiff", tmp_path / "1.tiff"], 6, color=True)
    assert list(cache.glob("*.f4")) == []


@pytest.mark.parametrize("color", [False, True])
def test_a_new_cache_format_and_another_colour_mode_are_decoded_again(files, monkeypatch, color):
    decode_images(files, 10, color=False)
    if not color:
        monkeypatch.setattr(image_cache, "CACHE_FORMAT", image_cache.CACHE_FORMAT + 1)
    monkeypatch.setattr(image_cache, "read_letterboxed", fail_to_decode)
    with pytest.raises(pytest.fail.Exception, match="decoded again"):
        decode_images(files, 10, color=color)


def test_changes_of_the_tensor_do_not_reach_the_cache(files):
    first, *_ = decode_images(files, 10, color=False)
    expected = first.clone()
    first.zero_()
    assert torch.equal(decode_images(files, 10, color=False)[0], expected)


def test_an_interrupted_run_leaves_no_file(files, monkeypatch, cache):
    def interrupted(paths, *_):
        yield paths[0], torch.zeros(1, 10, 10)
        raise KeyboardInterrupt

    monkeypatch.setattr(image_cache, "read_letterboxed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        decode_images(files, 10, color=False)
    assert list(cache.iterdir()) == []


def test_the_oldest_files_are_deleted_when_the_cache_is_full(files, monkeypatch, cache):
    monkeypatch.setattr(image_cache, "MAX_CACHE_BYTES", 10_000)
    for size in (10, 11, 12, 13):
        decode_images(files, size, color=False)
    sizes = [file.stat().st_size for file in cache.glob("*.f4")]
    assert sum(sizes) <= 10_000
    assert 8 * 13 * 13 * 4 in sizes
    assert len(list(cache.glob("*.json"))) == len(sizes)


def test_old_partial_files_are_deleted_and_recent_ones_are_not(files, cache):
    decode_images(files, 10, color=False)
    (complete,) = cache.glob("*.f4")
    old, recent = (complete.with_name(f".{complete.name}.{number}") for number in (123, 456))
    for file in (old, recent):
        file.write_bytes(b"partial")
    os.utime(old, (1, 1))
    decode_images(files, 11, color=False)
    assert not old.exists()
    assert recent.exists()
    assert complete.exists()


@pytest.mark.parametrize("damage", ["truncate", "empty", "nan", "delete", "folder", "garbage"])
@pytest.mark.parametrize("suffix", [".f4", ".json"])
def test_a_damaged_entry_is_made_again(files, cache, damage, suffix):
    expected, positions, unreadable = decode_images(files, 10, color=False)
    expected = expected.clone()
    (path,) = cache.glob(f"*{suffix}")
    content = path.read_bytes()
    path.unlink()
    if damage == "folder":
        path.mkdir()
    elif damage != "delete":
        garbage = {"truncate": content[:-5], "empty": b"", "garbage": b"{]" * len(content), "nan": bytes(content[:-4])}
        path.write_bytes(garbage[damage] + (np.float32("nan").tobytes() if damage == "nan" else b""))
    for _ in range(2):
        images, *others = decode_images(files, 10, color=False)
        assert torch.equal(images, expected)
        assert torch.equal(others[0], positions)
        assert others[1] == unreadable
    assert path.is_file()
    assert path.read_bytes() == content


def test_a_changed_file_of_the_same_size_and_modification_time_is_decoded_again(files):
    """The content of one file is replaced, and its modification time is set back."""
    first = decode_images(files, 10, color=False)[0].clone()
    size = max(files[0].stat().st_size, files[1].stat().st_size)
    for file in files[:2]:  # what follows the end of a PNG is ignored
        with file.open("ab") as stream:
            stream.write(bytes(size - file.stat().st_size))
    before = decode_images(files, 10, color=False)[0].clone()
    status = files[0].stat()
    shutil.copyfile(files[1], files[0])
    os.utime(files[0], ns=(status.st_atime_ns, status.st_mtime_ns))
    assert (files[0].stat().st_mtime_ns, files[0].stat().st_size) == (status.st_mtime_ns, status.st_size)
    after = decode_images(files, 10, color=False)[0]
    assert torch.equal(before, first)
    assert torch.equal(after[0], first[1])


@pytest.fixture
def failing_open(monkeypatch):
    """Let the reading of one file fail with a number of the system. A function of both; None ends it."""
    stat, failures = os.stat, {}

    def failing_stat(path, **options):
        if number := failures.get(path):
            raise OSError(number, os.strerror(number))
        return stat(path, **options)

    read = image_cache.read_letterboxed

    def failing_read(paths, size, color):
        with monkeypatch.context() as patch:  # the fingerprint is not affected, as with too many open files
            patch.setattr(os, "stat", failing_stat)
            yield from read(paths, size, color)

    monkeypatch.setattr(image_cache, "read_letterboxed", failing_read)
    return failures.__setitem__


@pytest.mark.parametrize("number", [errno.EACCES, errno.EMFILE, errno.ENOMEM, errno.EIO])
def test_a_failure_of_the_system_is_not_remembered(files, cache, failing_open, number):
    failing_open(files[4], number)
    images, positions, unreadable = decode_images(files, 10, color=False)
    assert positions.tolist() == [0, 1, 3, 5, 6, 7, 8]
    assert unreadable[1] == UnreadableFile(files[4], os.strerror(number))
    (pixel_file,) = cache.glob("*.f4")
    inode = pixel_file.stat().st_ino
    assert decode_images(files, 10, color=False)[1].tolist() == positions.tolist()
    assert pixel_file.stat().st_ino == inode  # while it fails, the other files are not decoded again
    failing_open(files[4], None)
    images, positions, unreadable = decode_images(files, 10, color=False)
    assert positions.tolist() == [0, 1, 3, 4, 5, 6, 7, 8]
    assert [file.path for file in unreadable] == [files[2]]
    assert torch.equal(images[3], next(iter(read_letterboxed([files[4]], 10, False)))[1])


def test_files_that_change_while_they_are_decoded_are_not_stored(files, cache):
    steps = []

    def step():
        steps.append(0)
        if len(steps) == 3:
            files[0].write_bytes(files[-1].read_bytes())

    images, *_ = decode_images(files, 10, color=False, step=step)
    assert len(images) == 8
    assert list(cache.iterdir()) == []
    assert torch.equal(decode_images(files, 10, color=False)[0][0], images[-1])


def test_without_a_usable_cache_there_is_one_warning_and_the_images(files, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    expected = decode_images(files, 10, color=False)[0]
    monkeypatch.setenv("TIGRANET_CACHE", str(tmp_path / "file"))
    for has_temporary_folder in (True, False):
        if not has_temporary_folder:
            monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "file"))
        with pytest.warns(DecodeCacheWarning, match=r"file/decoded'.*TIGRANET_CACHE") as record:
            images, positions, unreadable = decode_images(files, 10, color=False)
        assert len(record) == 1
        assert torch.equal(images, expected)
        assert (len(positions), len(unreadable)) == (8, 1)
        images.zero_()


@pytest.mark.parametrize("moment", ["write", "publish"])
def test_on_a_full_disk_the_images_are_decoded_without_the_cache(files, cache, monkeypatch, moment):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    class FullFile(io.FileIO):
        def write(self, content):
            return full() if self.tell() > 1000 else super().write(content)

    open_path = Path.open

    def open_full(path, mode="r", *arguments, **options):
        return FullFile(path, mode) if mode.startswith("x") else open_path(path, mode, *arguments, **options)

    if moment == "write":
        monkeypatch.setattr(Path, "open", open_full)
    else:
        monkeypatch.setattr(image_cache.CacheEntry, "publish", full)
    with pytest.warns(DecodeCacheWarning, match="No space left") as record:
        images, *_ = decode_images(files, 10, color=False)
    assert len(record) == 1
    assert list(cache.iterdir()) == []
    monkeypatch.undo()
    assert torch.equal(images, decode_images(files, 10, color=False)[0])


def test_a_valid_entry_is_read_from_a_cache_that_cannot_be_written(files, cache, monkeypatch):
    first, *_ = decode_images(files, 10, color=False)

    def refuse(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(image_cache, "_decode", fail_to_decode)
    for name in ("utime", "mkdir", "replace", "unlink"):
        monkeypatch.setattr(os, name, refuse)
    assert torch.equal(decode_images(files, 10, color=False)[0], first)


def test_entries_in_use_are_not_deleted(files, monkeypatch, cache):
    monkeypatch.setattr(image_cache, "MAX_CACHE_BYTES", 1)
    images = {size: decode_images(files, size, color=False)[0] for size in (10, 11)}
    copies = {size: tensor.clone() for size, tensor in images.items()}
    decode_images(files, 12, color=False)
    sizes = {path.stat().st_size for path in cache.glob("*.f4")}
    assert sizes == {8 * size * size * 4 for size in (10, 11, 12)}
    assert all(torch.equal(images[size], copies[size]) for size in images)
    del images
    decode_images(files, 13, color=False)
    assert {path.stat().st_size for path in cache.glob("*.f4")} == {8 * 13 * 13 * 4}
    assert len(list(cache.glob("*.json"))) == 1


def test_files_that_another_process_deletes_first_are_no_error(files, monkeypatch, cache):
    """Every file disappears after it was listed, before it is examined or deleted."""
    decode_images(files, 10, color=False)
    listed = [*cache.glob("*"), cache / "vanished.f4", cache / ".vanished.f4.1"]
    monkeypatch.setattr(Path, "glob", lambda *_: iter(listed))
    monkeypatch.setattr(image_cache, "MAX_CACHE_BYTES", 1)
    assert len(decode_images(files, 11, color=False)[0]) == 8


def test_a_lock_that_is_held_too_long_does_not_block(files, cache, monkeypatch):
    from filelock import FileLock

    monkeypatch.setattr(cache_locks, "STALL_SECONDS", 0.1)
    decode_images(files, 11, color=False)
    name = image_cache._fingerprint(files, 10, False)
    lock, warning = FileLock(cache / f".{name}.lock"), pytest.warns(DecodeCacheWarning, match="no progress")
    with lock, ThreadPoolExecutor(1) as pool, warning:
        images, *_ = pool.submit(decode_images, files, 10, False).result()
    assert len(images) == 8


PROCESSES = """
import hashlib, json, os, signal, sys, time
from pathlib import Path

from tigranet.data import image_cache
from tigranet.data import image_files

files = list(image_files(Path(sys.argv[1])))
cache = Path(os.environ["TIGRANET_CACHE"], "decoded")
read = image_cache.read_letterboxed


def start(size, delay=0.02):
    \"\"\"Decode in a new process, which prints the hash of the images and how many files it decoded.\"\"\"

    def slow_read(*arguments):
        for item in read(*arguments):
            time.sleep(delay)
            yield item

    process = os.fork()
    if process == 0:
        image_cache.read_letterboxed = slow_read
        steps = []
        images, positions, unreadable = image_cache.decode_images(files, size, False, lambda: steps.append(0))
        result = [size, hashlib.sha256(images.numpy()).hexdigest(), len(positions), len(unreadable), len(steps)]
        os.write(1, (json.dumps(result) + "\\n").encode())
        os._exit(0)
    return process


def wait_for(condition):
    deadline = time.time() + 30
    while not condition():
        assert time.time() < deadline
        time.sleep(0.002)


together = [start(10) for _ in range(4)]
assert [os.waitpid(process, 0)[1] for process in together] == [0] * 4

killed = start(11, delay=60)
wait_for(lambda: list(cache.glob(".*.f4.*")))
others = [start(11) for _ in range(2)]
time.sleep(0.05)
os.kill(killed, signal.SIGKILL)
assert os.waitpid(killed, 0)[1] == signal.SIGKILL
assert [os.waitpid(process, 0)[1] for process in others] == [0] * 2
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes by fork")
def test_processes_that_decode_at_once_share_the_work_and_a_killed_one_blocks_nobody(files, cache, warm_process):
    """Four processes decode the same files; then one of three is killed while it decodes."""
    process = warm_process.run(PROCESSES, files[0].parent.parent, timeout=100)
    assert process.returncode == 0, process.stderr
    assert process.stderr == ""
    results = [json.loads(line) for line in process.stdout.splitlines()]
    for size, processes in ((10, 4), (11, 2)):
        expected = hashlib.sha256(decode_images(files, size, color=False)[0].numpy()).hexdigest()
        of_size = [result[1:] for result in results if result[0] == size]
        assert sorted(of_size) == sorted([[expected, 8, 1, 9]] + [[expected, 8, 1, 0]] * (processes - 1))
    assert {path.suffix for path in cache.iterdir()} == {".f4", ".json"}
    assert len(list(cache.iterdir())) == 4
