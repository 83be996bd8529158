import os
from pathlib import Path

import pytest

from images import fill
from tigranet.data.folder_index import index_folder
from tigranet.data.folder_names import decode_class_folders, decode_folder_name


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (b"bolt", "bolt"),
        ("Ελλάδα".encode(), "Ελλάδα"),
        (b"caf\xe9", r"caf\xe9"),
        (b"\xff\xfe", r"\xff\xfe"),
        (b"a\nb", "a\nb"),
    ],
)
def test_a_folder_name_becomes_text_that_can_be_written_as_utf_8(name, expected):
    decoded = decode_folder_name(os.fsdecode(name))
    assert decoded == expected
    decoded.encode("utf-8")


def test_two_folders_with_one_class_name_are_refused():
    names = [os.fsdecode(b"caf\xe9"), r"caf\xe9"]
    assert decode_class_folders(Path("photos"), names[:1]) == (r"caf\xe9",)
    with pytest.raises(ValueError, match=r"photos.*rename") as error:
        decode_class_folders(Path("photos"), names)
    assert all(repr(os.fsencode(name)) in str(error.value) for name in names)


def test_the_class_names_of_a_folder_of_images_are_valid_utf_8(tmp_path):
    names = [os.fsdecode(name) for name in (b"\xff", b"a", "日本".encode())]
    index = index_folder(fill(tmp_path / "photos", dict.fromkeys(names, 2)))
    assert index.class_names == tuple(sorted(["a", "日本", r"\xff"]))
    folders = [index.class_names[label] for label in index.labels]
    assert folders == [decode_folder_name(path.parent.name) for path in index.paths]
