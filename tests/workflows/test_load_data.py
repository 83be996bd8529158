import io
import os
import shutil

import pytest
import torch
from rich.console import Console

from tigranet.data.duplicates import DuplicateCounts
from tigranet.workflows.load_data import LoadedData, is_named_data_set, load_data


def test_a_name_a_path_or_a_data_set_is_loaded(folder, small):
    assert load_data("mnist-012").data.name == "mnist-012"
    assert load_data(folder).data.name == load_data(str(folder)).data.name == "photos"
    assert load_data(small) == LoadedData(small)


def test_the_options_for_own_images_are_used(folder):
    data = load_data(folder, size=8, color=True, train_images=5, seed=1).data
    assert data.train.images.shape == (5, 1, 8, 8)
    assert len(data.test.labels) == 35


def test_grey_images_are_repeated_for_a_network_that_reads_three_channels(folder):
    grey = load_data(folder, color=True).data
    repeated = load_data(folder, color=True, channels=3).data
    assert torch.equal(repeated.test.images, grey.test.images.expand(-1, 3, -1, -1))
    for channels in (1, 5):
        assert load_data(folder, color=True, channels=channels).data.train.images.shape[1] == 1


def test_unreadable_files_are_counted_on_the_console_and_listed_in_the_result(folder):
    (folder / "a" / "broken.png").touch()
    console = Console(file=io.StringIO(), width=200)
    loaded = load_data(folder, console=console)
    assert [file.path.name for file in loaded.unreadable_files] == ["broken.png"]
    assert "unreadable files, which are not used: 1" in console.file.getvalue()


def test_a_folder_with_the_name_of_a_data_set_must_be_written_as_a_path(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder.rename(tmp_path / "mnist-012")
    console = Console(file=io.StringIO(), width=200)
    assert load_data("mnist-012", console=console).data.class_names == ("0", "1", "2")
    assert "'./mnist-012'" in console.file.getvalue()
    assert load_data("./mnist-012").data.class_names == ("a", "b")


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match=r"'mnist-12'.*'mnist-012'"):
        load_data("mnist-12")


def test_only_names_are_names(small, tmp_path):
    assert is_named_data_set("eth80")
    assert not any(map(is_named_data_set, ("cats", tmp_path, small)))


def test_duplicates_are_counted_on_the_console_and_in_the_result(folder):
    assert load_data("mnist-012").duplicates is None
    console = Console(file=io.StringIO(), width=200)
    assert load_data(folder, console=console).duplicates == DuplicateCounts()
    assert console.file.getvalue() == ""
    shutil.copy(folder / "a" / "003.png", folder / "b" / "[red].png")
    loaded = load_data(folder, console=console)
    assert loaded.duplicates.conflicting_images == 2
    assert "different labels: 2 ('a/003.png', 'b/[red].png')" in console.file.getvalue()
    assert "duplicate images: 1; left out" in console.file.getvalue()


def test_common_images_of_a_data_set_in_memory_are_counted_and_stay(small, mnist_012):
    console = Console(file=io.StringIO(), width=200)
    assert load_data(mnist_012, console=console).data is mnist_012
    assert console.file.getvalue() == ""
    assert load_data(small, console=console).data is small
    assert "30 of 30 test images of small" in console.file.getvalue()


def test_a_hostile_table_is_refused_in_one_line(tmp_path):
    (tmp_path / "t.csv").write_text("path,label\na\0.png,a\nb.png,b\n")
    with pytest.raises(ValueError, match=r"line 2 of '.*t\.csv'.*NUL"):
        load_data(tmp_path / "t.csv")
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(ValueError, match=r"pipe\.csv"):
        load_data(tmp_path / "pipe.csv")


def test_folders_and_missing_files_in_a_table_are_unreadable(folder):
    paths = [*sorted(folder.rglob("*.png")), folder / "a", folder / ("x" * 300), folder / "missing.png"]
    rows = [f"{path},{'a' if number % 2 else 'b'}" for number, path in enumerate(paths)]  # absolute paths
    (folder.parent / "t.csv").write_text("\n".join(["path,label", *rows]))
    loaded = load_data(folder.parent / "t.csv")
    assert [file.path for file in loaded.unreadable_files] == paths[-3:]
