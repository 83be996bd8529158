import numpy as np
import pytest
import torch

from tigranet.data.arrays import read_arrays

RNG = np.random.default_rng(0)
GREY = RNG.integers(0, 256, (6, 9, 9), dtype=np.uint8)
LABELS = np.array([0, 1, 2, 0, 1, 2])


def stored(folder, **arrays):
    np.savez(folder / "a.npz", **arrays)
    return folder / "a.npz"


def test_images_and_labels(tmp_path):
    found = read_arrays(stored(tmp_path, images=GREY, label=LABELS, class_names=np.array(["x", "y", "z"])))
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
    found = read_arrays(stored(tmp_path, **arrays))
    assert found.parts == ("train",) * 3 + ("validation",) * 2 + ("test",)
    assert found.labels == tuple(LABELS)


def test_colour_sizes_types_and_groups(tmp_path):
    colour = RNG.random((6, 8, 12, 3), dtype=np.float32)
    path = stored(tmp_path, x=colour, y=np.array(list("bababa")), sample=np.arange(6) // 2)
    found = read_arrays(path, group="sample")
    assert found.class_names == ("a", "b")
    assert found.groups == ("0", "0", "1", "1", "2", "2")
    assert found.images.shape == (6, 1, 12, 12)
    assert read_arrays(path, size=8, color=True).images.shape == (6, 3, 8, 8)
    sixteen = read_arrays(stored(tmp_path, x=GREY.astype(np.uint16) * 257, y=LABELS))
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
    ],
)
def test_arrays_that_cannot_be_read(tmp_path, arrays, message):
    with pytest.raises(ValueError, match=message):
        read_arrays(stored(tmp_path, **arrays))


def test_files_and_groups_that_cannot_be_read(tmp_path):
    (tmp_path / "b.npz").write_bytes(b"PK nothing")
    with pytest.raises(ValueError, match=r"cannot be read as NumPy's \.npz"):
        read_arrays(tmp_path / "b.npz")
    with pytest.raises(ValueError, match="has no array 'sample' with one group an image"):
        read_arrays(stored(tmp_path, x=GREY, y=LABELS), group="sample")
