import numpy as np
import pytest
import torch

from tigranet.data.npz_data import read_npz_images

RNG = np.random.default_rng(0)
GREY = RNG.integers(0, 256, (6, 9, 9), dtype=np.uint8)
LABELS = np.array([0, 1, 2, 0, 1, 2])


def stored(folder, **arrays):
    np.savez(folder / "a.npz", **arrays)
    return folder / "a.npz"


def test_images_and_labels(tmp_path):
    found = read_npz_images(stored(tmp_path, images=GREY, label=LABELS, class_names=np.array(["x", "y", "z"])))
    assert found.class_names == ("x", "y", "z")
    assert torch.equal(found.images, torch.from_numpy(GREY)[:, None].float() / 255)
    assert found.labels == tuple(LABELS)
    assert set(found.parts) == {""}


@pytest.mark.parametrize("names", [("x_{}", "y_{}"), ("{}_images", "{}_labels"), ("X_{}", "Y_{}")])
def test_parts_as_others_name_them(tmp_path, names):
    arrays = {}
    for part, rows in (("train", slice(0, 3)), ("val", slice(3, 5)), ("test", slice(5, 6))):
        arrays[names[0].format(part)] = GREY[rows]
        arrays[names[1].format(part)] = LABELS[rows, None]
    found = read_npz_images(stored(tmp_path, **arrays))
    assert found.parts == ("train",) * 3 + ("validation",) * 2 + ("test",)
    assert found.labels == tuple(LABELS)


def test_colour_sizes_types_and_groups(tmp_path):
    colour = RNG.random((6, 8, 12, 3), dtype=np.float32)
    path = stored(tmp_path, x=colour, y=np.array(list("bababa")), sample=np.arange(6) // 2)
    found = read_npz_images(path, group="sample")
    assert found.class_names == ("a", "b")
    assert found.groups == ("0", "0", "1", "1", "2", "2")
    assert found.images.shape == (6, 1, 12, 12)
    assert read_npz_images(path, size=8, color=True).images.shape == (6, 3, 8, 8)
    sixteen = read_npz_images(stored(tmp_path, x=GREY.astype(np.uint16) * 257, y=LABELS))
    assert torch.allclose(sixteen.images, torch.from_numpy(GREY)[:, None].float() / 255)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"pictures": GREY}, "has no array 'images' or 'x_train', it has: pictures"),
        ({"x": GREY}, "has no array 'labels', it has: x"),
        ({"x_test": GREY, "y_test": LABELS}, "has no array 'images' or 'x_train'"),
        ({"x": GREY, "y": LABELS[:5]}, r"uint8 \(6, 9, 9\) and 5 labels"),
        ({"x": GREY[0], "y": LABELS}, r"images are numbers \(n, H, W\)"),
        ({"x": GREY, "y": LABELS * 0}, "needs at least 2 classes, '.*' has 1"),
        ({"x": GREY.astype(float), "y": LABELS}, r"floating-point images are in \[0, 1\]"),
        ({"x": GREY, "y": LABELS.astype(object)}, "cannot be read as NumPy's .npz"),
        ({"x": GREY.astype(int) * 300, "y": LABELS}, r"'.*a\.npz' holds .* to 7\d{4}, .*save them as uint8 or uint16"),
        ({"x": GREY.astype(int) - 300, "y": LABELS}, r"'.*a\.npz' has -\d+: shift them to 0, then divide"),
        ({"x": GREY.view(np.int8), "y": LABELS}, r"'.*a\.npz' has -128: shift them to 0"),
        ({"x": np.array(5), "y": LABELS}, r"int64 \(\) and 6 labels"),
        ({"x": GREY[:, :0], "y": LABELS}, r"uint8 \(6, 0, 9\) and 6 labels"),
        ({"x": GREY, "y": LABELS + 1, "classes": ["a", "b", "c"]}, r"labels are 0 \.\. 2 .* '.*' are 1 \.\. 3: count"),
        ({"x": GREY, "y": LABELS - 1, "classes": ["a", "b", "c"]}, r"labels are 0 \.\. 2 .* '.*' are -1 \.\. 1: count"),
    ],
)
def test_arrays_that_cannot_be_read(tmp_path, arrays, message):
    with pytest.raises(ValueError, match=message):
        read_npz_images(stored(tmp_path, **arrays))


def test_files_and_groups_that_cannot_be_read(tmp_path):
    (tmp_path / "b.npz").write_bytes(b"PK nothing")
    with pytest.raises(ValueError, match=r"cannot be read as NumPy's \.npz"):
        read_npz_images(tmp_path / "b.npz")
    for groups in ({}, {"sample": np.array("one")}, {"sample": np.arange(5)}):
        with pytest.raises(ValueError, match="has no array 'sample' with one group an image"):
            read_npz_images(stored(tmp_path, x=GREY, y=LABELS, **groups), group="sample")


@pytest.mark.parametrize("kind", [np.int32, np.uint32, np.int64, np.uint64])
@pytest.mark.parametrize("white", [1, 255, 65535])
def test_wide_whole_numbers_go_to_the_first_white_that_none_exceeds(tmp_path, kind, white):
    unit = GREY > 99
    found = read_npz_images(stored(tmp_path, x=(unit * white).astype(kind), y=LABELS))
    assert torch.equal(found.images, torch.from_numpy(unit)[:, None].float())


def test_white_is_the_same_in_all_parts(tmp_path):
    dark = np.minimum(GREY, 1).astype(int)
    found = read_npz_images(stored(tmp_path, x_train=GREY.astype(int), y_train=LABELS, x_test=dark, y_test=LABELS))
    assert torch.equal(found.images, torch.from_numpy(np.concatenate([GREY, dark]))[:, None].float() / 255)


def test_parts_of_different_sizes_are_brought_to_the_median_one(tmp_path):
    parts = {"x_train": GREY, "y_train": LABELS, "x_test": np.zeros((3, 20, 14), np.uint8), "y_test": LABELS[:3]}
    found = read_npz_images(stored(tmp_path, **parts))
    assert found.images.shape == (9, 1, 9, 9)
    assert torch.equal(found.images[:6], torch.from_numpy(GREY)[:, None].float() / 255)
    assert read_npz_images(stored(tmp_path, **parts), size=12).images.shape == (9, 1, 12, 12)
    colour = np.repeat(GREY[..., None], 3, axis=-1)
    mixed = stored(tmp_path, x_train=GREY, y_train=LABELS, x_test=colour, y_test=LABELS)
    assert read_npz_images(mixed).images.shape == (12, 1, 9, 9)
    with pytest.raises(ValueError, match="have 1 channels, others 3: leave out --color"):
        read_npz_images(mixed, color=True)
