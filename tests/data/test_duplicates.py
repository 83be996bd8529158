import shutil
from collections import Counter
from pathlib import Path
from time import perf_counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from images import fill
from tigranet.data import load_user_data
from tigranet.data.duplicates import DuplicateCounts, exclude_duplicates
from tigranet.data.image_io import read_image
from tigranet.data.leakage import hash_pictures

SOURCE = Path("photos")


def keep(hashes, labels, parts):
    """Call the function with lists, and return the parts as lists with the counts."""
    tensors = [torch.tensor(part, dtype=torch.int64) for part in parts]
    remaining, counts = exclude_duplicates(SOURCE, hashes, labels, tensors)
    assert all(part.dtype == torch.int64 for part in remaining)
    return [part.tolist() for part in remaining], counts


def test_without_duplicates_nothing_changes():
    parts = [[4, 0], [2], [3, 1]]
    assert keep("abcde", [0, 1, 0, 1, 0], parts) == (parts, DuplicateCounts())
    assert keep("abc", [0, 1, 0], [[0, 1, 2], [], []]) == ([[0, 1, 2], [], []], DuplicateCounts())


def test_copies_of_training_images_leave_validation_and_test():
    # positions:     0123456789
    remaining, counts = keep("abcdaebfgh", [0, 1, 0, 1, 0, 0, 1, 1, 0, 1], [[0, 1, 2, 3], [4, 5], [6, 7, 8, 9]])
    assert remaining == [[0, 1, 2, 3], [5], [7, 8, 9]]
    assert counts == DuplicateCounts(duplicate_images=2, excluded_validation=1, excluded_test=1)


def test_copies_of_validation_images_leave_the_test():
    remaining, counts = keep("abccd", [0, 1, 0, 0, 1], [[0, 1], [2], [3, 4]])
    assert remaining == [[0, 1], [2], [4]]
    assert counts == DuplicateCounts(duplicate_images=1, excluded_test=1)


def test_copies_within_one_part_stay_and_are_counted():
    parts = [[0, 1, 2], [3, 4], [5, 6]]
    remaining, counts = keep("aabccdd", [0, 0, 1, 0, 0, 1, 1], parts)
    assert remaining == parts
    assert counts == DuplicateCounts(duplicate_images=3)


def test_images_with_two_labels_leave_all_parts_and_are_named():
    remaining, counts = keep("aabcada", [0, 1, 0, 1, 0, 1, 1], [[0, 1, 2, 3], [4], [5, 6]])
    assert remaining == [[2, 3], [], [5]]
    assert counts == DuplicateCounts(
        duplicate_images=3,
        conflicting_images=4,
        excluded_train=2,
        excluded_validation=1,
        excluded_test=1,
        conflicting_examples=("image 0", "image 1", "image 4", "image 6"),
    )


def test_a_class_keeps_its_training_images_if_all_of_them_have_two_labels():
    remaining, counts = keep("aabc", [0, 1, 0, 0], [[0, 1, 2], [], [3]])
    assert remaining == [[1, 2], [], [3]]  # class 1 has no other image, class 0 has one
    assert (counts.conflicting_images, counts.excluded_train) == (2, 1)


def test_conflicting_images_are_named_relative_to_the_folder_without_control_characters(tmp_path):
    paths = [tmp_path / "a" / "1.png", tmp_path / "b" / "\x1b[2J.png", Path("/elsewhere/3.png"), tmp_path / "\udcff"]
    parts = [torch.tensor([0, 1, 2, 3]), torch.tensor([], dtype=torch.int64), torch.tensor([], dtype=torch.int64)]
    expected = ("a/1.png", r"b/\x1b[2J.png", "/elsewhere/3.png", r"\udcff")
    for source in (tmp_path, tmp_path / "table.csv"):
        counts = exclude_duplicates(source, "aaaa", [0, 1, 0, 1], parts, paths)[1]
        assert counts.conflicting_examples == expected


def test_a_test_without_any_new_image_is_refused():
    with pytest.raises(ValueError, match=r"3 test images of 'photos'"):
        keep("ababa", [0, 1, 0, 1, 0], [[0, 1], [], [2, 3, 4]])
    assert keep("abab", [0, 1, 0, 1], [[0, 1], [2, 3], []])[0] == [[0, 1], [], []]  # it had no test images


def test_validation_images_that_are_also_the_test_images_stay():
    assert keep("abcd", [0, 1, 0, 1], [[0, 1], [2, 3], [2, 3]]) == ([[0, 1], [2, 3], [2, 3]], DuplicateCounts())


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("abcdefghij"), st.integers(0, 2), st.sampled_from([0, 0, 0, 1, 2])),
        min_size=1,
        max_size=25,
    )
)
def test_no_part_has_an_image_of_an_earlier_one_and_no_class_is_lost(images):
    hashes, labels = [image[0] for image in images], [image[1] for image in images]
    parts = [[position for position, image in enumerate(images) if image[2] == part] for part in range(3)]
    labels_of = {content: {label for other, label, _ in images if other == content} for content in hashes}
    clean_test = [
        position
        for position in parts[2]
        if len(labels_of[hashes[position]]) == 1
        and hashes[position] not in {hashes[other] for other in parts[0] + parts[1]}
    ]
    if parts[2] and not clean_test:
        with pytest.raises(ValueError, match="test images"):
            keep(hashes, labels, parts)
        return
    (train, validation, test), counts = keep(hashes, labels, parts)
    assert test == clean_test
    assert {labels[position] for position in train} == {labels[position] for position in parts[0]}
    contents = [{hashes[position] for position in part} for part in (train, validation, test)]
    assert not contents[0] & contents[1]
    assert not (contents[0] | contents[1]) & contents[2]
    assert all(len(labels_of[content]) == 1 for content in contents[1] | contents[2])
    for position in set(parts[0]) - set(train):
        assert len(labels_of[hashes[position]]) > 1
    for before, after in zip(parts, (train, validation, test), strict=True):
        assert after == [position for position in before if position in after]
    excluded = (counts.excluded_train, counts.excluded_validation, counts.excluded_test)
    assert sum(excluded) == len(images) - len(train) - len(validation) - len(test)
    assert counts.duplicate_images == sum(count - 1 for count in Counter(hashes).values())
    if len(set(hashes)) == len(hashes):
        assert [train, validation, test] == parts


def test_the_counts_are_described_for_the_user():
    assert DuplicateCounts().describe() == []
    counts = DuplicateCounts(2, 9, 4, 3, 1, 5, ("a.png", "b.png"))
    rows, conflicts, copies = counts.describe()
    assert rows.endswith(": 2")
    assert all(words in conflicts for words in ("labels: 4", "'a.png', 'b.png'"))
    assert all(words in copies for words in ("9", "3 training", "1 validation", "5 test"))


def pixels_of(part):
    return {image.numpy().tobytes() for image in part.images}


def assert_disjoint(data):
    parts = [pixels_of(part) for part in (data.train, data.validation, data.test)]
    assert len(set.union(*parts)) == sum(map(len, parts))


def assert_same_images(data, other):
    for part in ("train", "validation", "test"):
        assert torch.equal(getattr(data, part).images, getattr(other, part).images)


def test_one_picture_in_two_parts_of_a_folder_is_found_under_any_name_and_format(tmp_path):
    for seed, part in enumerate(("train", "val", "test")):
        fill(tmp_path / part, {"a": 5, "b": 5}, seed=seed)
    original, _ = load_user_data(tmp_path)
    shutil.copy(tmp_path / "train" / "a" / "001.png", tmp_path / "test" / "a" / "copy.png")
    shutil.copy(tmp_path / "train" / "b" / "001.png", tmp_path / "val" / "b" / "copy.png")
    shutil.copy(tmp_path / "val" / "b" / "002.png", tmp_path / "test" / "b" / "another.png")
    with Image.open(tmp_path / "train" / "a" / "002.png") as image:
        image.save(tmp_path / "test" / "a" / "format.tif")
        image.convert("RGB").save(tmp_path / "test" / "a" / "format.bmp")
    data, _ = load_user_data(tmp_path)
    assert_same_images(data, original)
    assert data.test_files == original.test_files
    assert len(data.test_positions) == len(data.test.labels)
    assert original.duplicates == DuplicateCounts()
    assert data.duplicates == DuplicateCounts(duplicate_images=5, excluded_validation=1, excluded_test=4)


def test_a_random_split_never_separates_copies(tmp_path):
    fill(tmp_path, {"a": 30, "b": 30})
    for number in range(0, 30, 3):
        shutil.copy(tmp_path / "a" / f"{number:03d}.png", tmp_path / "a" / f"copy{number}.png")
    excluded = 0
    for seed in range(3):
        data, _ = load_user_data(tmp_path, seed=seed)
        assert_disjoint(data)
        assert data.duplicates.duplicate_images == 10
        assert all(len(part.labels.unique()) == 2 for part in (data.train, data.validation, data.test))
        excluded += data.duplicates.excluded_test
    assert excluded > 0
    drawn, _ = load_user_data(tmp_path, train_images=30)
    assert_disjoint(drawn)
    assert len(drawn.train.labels) == 30


def test_copies_in_different_groups_leave_the_test(tmp_path):
    fill(tmp_path, {"a": 12, "b": 12})
    for name in ("a", "b"):
        for number in (0, 4, 8):
            shutil.copy(tmp_path / name / f"{number:03d}.png", tmp_path / name / f"{number + 102}.png")
    data, _ = load_user_data(tmp_path, group=r"(./..)")
    assert_disjoint(data)
    assert data.duplicates.duplicate_images == 6


def write_table(folder, *further_rows):
    """Write a table of 10 images of each of two classes, and of further rows."""
    rows = [f"{name}/{number:03d}.png,{name}" for name in "ab" for number in range(10)]
    (folder / "table.csv").write_text("\n".join(["path,label", *rows, *further_rows]))
    return folder / "table.csv"


def test_a_table_with_repeated_rows(tmp_path):
    fill(tmp_path, {"a": 10, "b": 10})
    expected, _ = load_user_data(write_table(tmp_path))
    table = write_table(tmp_path, *(f"a/{number:03d}.png,a" for number in range(7)))
    repeated, _ = load_user_data(table)
    assert_same_images(repeated, expected)
    assert repeated.duplicates == DuplicateCounts(repeated_rows=7)


def test_a_table_with_two_labels_of_one_image(tmp_path):
    fill(tmp_path, {"a": 10, "b": 10})
    conflicting, _ = load_user_data(write_table(tmp_path, "a/003.png,b"))
    with Image.open(tmp_path / "a" / "003.png") as image:
        pixels = (np.asarray(image, dtype=np.float32) / np.float32(255)).tobytes()
    for part in (conflicting.train, conflicting.validation, conflicting.test):
        assert pixels not in pixels_of(part)
    assert conflicting.duplicates.conflicting_images == 2
    assert conflicting.duplicates.conflicting_examples == ("a/003.png", "a/003.png")


def test_arrays_are_examined_too(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (12, 8, 8), dtype=np.uint8)
    labels = np.arange(12) % 2
    np.savez(
        tmp_path / "arrays.npz",
        x_train=images[:8], y_train=labels[:8], x_val=images[8:10], y_val=labels[8:10],
        x_test=images[[0, 3, 10, 11]], y_test=[0, 0, 0, 1],
    )  # fmt: skip
    data, _ = load_user_data(tmp_path / "arrays.npz")
    assert [len(part.labels) for part in (data.train, data.validation, data.test)] == [7, 2, 2]
    assert (data.duplicates.duplicate_images, data.duplicates.conflicting_images) == (2, 2)
    assert data.duplicates.conflicting_examples == ("image 3", "image 11")


def test_the_error_of_a_folder_whose_test_is_its_training_part_names_it(tmp_path):
    fill(tmp_path / "train", {"a": 5, "b": 5})
    shutil.copytree(tmp_path / "train", tmp_path / "test")
    with pytest.raises(ValueError, match=rf"10 test images of '{tmp_path}'"):
        load_user_data(tmp_path)


def test_hashing_takes_less_time_than_decoding(tmp_path):
    fill(tmp_path, {"a": 100, "b": 100}, size=(64, 64))
    images = load_user_data(tmp_path)[0].train.images
    paths = sorted(tmp_path.rglob("*.png"))[: len(images)]

    def seconds(action):
        start = perf_counter()
        action()
        return perf_counter() - start

    hashing = min(seconds(lambda: hash_pictures(images)) for _ in range(3))
    decoding = min(seconds(lambda: [read_image(path) for path in paths]) for _ in range(3))
    assert hashing < decoding / 2
