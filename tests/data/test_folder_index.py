import numpy as np
import pytest

from images import fill, save
from tigranet.data.folder_index import image_files, index_csv, index_folder


def test_one_sub_folder_a_class(tmp_path):
    fill(tmp_path, {"b": 3, "a": 2})
    save(tmp_path / "a" / "deeper" / "x.jpg", np.zeros((4, 4), np.uint8))
    (tmp_path / "a" / "notes.txt").write_text("no image")
    (tmp_path / "a" / ".hidden.png").write_text("no image")
    (tmp_path / ".cache").mkdir()
    found = index_folder(tmp_path)
    assert found.class_names == ("a", "b")
    assert [(path.name, label) for path, label in zip(found.paths, found.labels, strict=True)] == [
        ("000.png", 0), ("001.png", 0), ("x.jpg", 0), ("000.png", 1), ("001.png", 1), ("002.png", 1),
    ]  # fmt: skip
    assert set(found.parts) == {""}
    assert found.groups is None
    assert len(list(image_files(tmp_path))) == 6


@pytest.mark.parametrize("files", [("config.json", "model.safetensors"), ("checkpoints/last.ckpt",)])
def test_a_saved_network_is_no_class_and_its_pictures_no_images(tmp_path, files):
    fill(tmp_path, {"b": 3, "a": 2})
    save(tmp_path / "model" / "rotated.png", np.zeros((4, 4), np.uint8))
    assert index_folder(tmp_path).class_names == ("a", "b", "model")
    for name in files:
        (tmp_path / "model" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "model" / name).write_text("")
    assert index_folder(tmp_path).class_names == ("a", "b")
    assert len(list(image_files(tmp_path))) == 5
    assert len(list(image_files(tmp_path / "model"))) == 1  # of which it is asked by name


def test_a_table_of_paths_labels_parts_and_groups(tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("\ufeffFile;Class;Split;Sample\nx/1.png;nut;train;A\n2.png;bolt;val;B\n/3.png;nut;TEST;C\n")
    found = index_csv(table, group="sample")
    assert found.class_names == ("bolt", "nut")
    assert [path.as_posix() for path in found.paths] == [f"{tmp_path}/x/1.png", f"{tmp_path}/2.png", "/3.png"]
    assert found.labels == (1, 0, 1)
    assert found.parts == ("train", "validation", "test")
    assert found.groups == ("A", "B", "C")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no rows: it wants a header and a row an image"),
        ("path,label\n", "has no rows"),
        ("name,label\n1.png,a\n", "has no column 'path', it has: name, label"),
        ("path,kind\n1.png,a\n", "has no column 'label', it has: path, kind"),
        ("path,label\n1.png,a\n2.png,\n", "line 3 of '.*' has nothing in the column 'label'"),
        ("path,label\n1.png,a\n2.png\n", "line 3 of '.*' has nothing in the column 'label'"),
        ("path,label\n1.png,a\n2.png,a\n", "has at least 2 classes, '.*' has only 'a'"),
        ("path,label,part\n1.png,a,some\n", "line 2 of '.*' has the part 'some': wanted train, val or test"),
        ("path,label\n1.png,a\n2.png,b\n", "has no column 'sample', it has: path, label"),
    ],
)
def test_tables_that_cannot_be_read(tmp_path, text, message):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        index_csv(tmp_path / "t.csv", group="sample")


def test_a_table_that_is_no_text(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"path,label\n\xff\xfe,a")
    with pytest.raises(ValueError, match="is not text in UTF-8: save it as 'CSV UTF-8'"):
        index_csv(tmp_path / "t.csv")
