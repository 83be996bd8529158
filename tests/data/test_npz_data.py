import numpy as np
import pytest
import torch

from tigranet.data import mapped_images, npz_data, npz_file
from tigranet.data.npz_data import read_npz_images

RNG = np.random.default_rng(0)
GREY = RNG.integers(0, 256, (6, 9, 9), dtype=np.uint8)
LABELS = np.array([0, 1, 2, 0, 1, 2])


def save_arrays(folder, **arrays):
    np.savez(folder / "a.npz", **arrays)
    return folder / "a.npz"


def as_tensor(pixels):
    return torch.from_numpy(pixels)[:, None].float()


def test_images_labels_and_class_names(tmp_path):
    data = read_npz_images(save_arrays(tmp_path, images=GREY, label=LABELS, class_names=np.array(["x", "y", "z"])))
    assert data.class_names == ("x", "y", "z")
    assert torch.equal(data.images, as_tensor(GREY) / 255)
    assert data.labels == tuple(LABELS)
    assert set(data.parts) == {""}


@pytest.mark.parametrize("names", [("x_{}", "y_{}"), ("{}_images", "{}_labels"), ("X_{}", "Y_{}")])
@pytest.mark.parametrize("validation", ["val", "valid", "validation"])
def test_names_of_arrays_may_include_the_part(tmp_path, names, validation):
    arrays = {}
    for part, rows in (("train", slice(0, 3)), (validation, slice(3, 5)), ("test", slice(5, 6))):
        arrays[names[0].format(part)] = GREY[rows]
        arrays[names[1].format(part)] = LABELS[rows, None]
    data = read_npz_images(save_arrays(tmp_path, **arrays))
    assert data.parts == ("train",) * 3 + ("validation",) * 2 + ("test",)
    assert data.labels == tuple(LABELS)
    assert torch.equal(data.images, as_tensor(GREY) / 255)


def test_arrays_without_a_part_have_precedence(tmp_path):
    data = read_npz_images(save_arrays(tmp_path, x=GREY, y=LABELS, x_test=GREY[:2], y_test=LABELS[:2]))
    assert data.parts == ("",) * 6


def test_colour_names_and_groups(tmp_path):
    colour = RNG.random((6, 8, 12, 3), dtype=np.float32)
    path = save_arrays(tmp_path, x=colour, y=np.array(list("bababa")), sample=np.arange(6) // 2)
    data = read_npz_images(path, group="sample")
    assert data.class_names == ("a", "b")
    assert data.groups == ("0", "0", "1", "1", "2", "2")
    assert data.images.shape == (6, 1, 12, 12)
    assert read_npz_images(path, size=8, color=True).images.shape == (6, 3, 8, 8)


def test_grey_and_colour_arrays_may_be_mixed(tmp_path):
    colour = RNG.integers(0, 256, (6, 9, 9, 3), dtype=np.uint8)
    path = save_arrays(tmp_path, x_train=GREY, y_train=LABELS, x_test=colour, y_test=LABELS)
    images = read_npz_images(path, color=True).images
    assert torch.equal(images[:6], (as_tensor(GREY) / 255).expand(-1, 3, -1, -1))
    assert torch.equal(images[6:], torch.from_numpy(colour).permute(0, 3, 1, 2) / 255)
    path = save_arrays(tmp_path, x_train=GREY, y_train=LABELS, x_test=colour[..., :2], y_test=LABELS)
    with pytest.raises(ValueError, match=r"a\.npz.*got 1 and 2.*--grey"):
        read_npz_images(path, color=True)


def test_16_bit_images_are_divided_by_the_largest_value_of_their_type(tmp_path):
    data = read_npz_images(save_arrays(tmp_path, x=GREY.astype(np.uint16) * 257, y=LABELS))
    assert torch.allclose(data.images, as_tensor(GREY) / 255)


@pytest.mark.parametrize(
    ("arrays", "values"),
    [
        ({"pictures": GREY}, "'images' or 'x_train'.*pictures"),
        ({"x": GREY}, "'labels'.*: x"),
        ({"x_test": GREY, "y_test": LABELS}, "'images' or 'x_train'.*x_test"),
        ({"x": GREY, "y": LABELS[:5]}, r"uint8 \(6, 9, 9\) and 5 labels"),
        ({"x": GREY[0], "y": LABELS}, r"\(n, H, W\).*uint8 \(9, 9\)"),
        ({"x": GREY, "y": LABELS * 0}, r"at least 2 classes.*got 1"),
        ({"x": GREY.astype(float), "y": LABELS}, r"\[0, 1\].*0 to 255"),
        ({"x": GREY, "y": LABELS.astype(object)}, r"a\.npz"),
        ({"x": GREY.astype(int) * 300, "y": LABELS}, r"a\.npz.*to 7\d{4}.*uint16"),
        ({"x": GREY.astype(int) - 300, "y": LABELS}, r"a\.npz.*got -300"),
        ({"x": GREY.view(np.int8), "y": LABELS}, r"a\.npz.*got -128"),
        ({"x": np.array(5), "y": LABELS}, r"int64 \(\) and 6 labels"),
        ({"x": GREY[:, :0], "y": LABELS}, r"uint8 \(6, 0, 9\) and 6 labels"),
        ({"x": GREY, "y": LABELS + 1, "classes": ["a", "b", "c"]}, r"0 to 2.* 1 to 3.*a\.npz"),
        ({"x": GREY, "y": LABELS + np.array([0, 0, np.nan] * 2)}, "nan at position 2"),
        ({"x": GREY, "y": LABELS + 1j}, "complex128"),
        ({"x": GREY, "y": np.array([b"\xff", b"a"] * 3)}, "UTF-8"),
        ({"x": GREY * 1j, "y": LABELS}, r"complex128 \(6, 9, 9\)"),
        ({"x": GREY[:0], "y": LABELS[:0]}, r"uint8 \(0, 9, 9\) and 0 labels"),
        ({"x": GREY, "y": LABELS, "class_names": ["a", "b", "a "]}, "same name, 'a' and 'a '"),
        ({"x": np.zeros((6, 3, 9, 9), np.uint8), "y": LABELS}, r"\(3, 9, 9\).*first.*transpose"),
        ({"x": np.zeros((6, 1, 9, 9)), "y": LABELS}, r"\(1, 9, 9\).*first.*transpose"),
        ({"x": GREY, "X": GREY, "y": LABELS}, "'x' and 'X'"),
        ({"x": np.full((6, 9, 9), np.nan), "y": LABELS}, "nan"),
        ({"x": np.full((6, 9, 9), 1e300), "y": LABELS}, "inf"),
        ({"x": GREY, "y": LABELS - 1, "classes": ["a", "b", "c"]}, r"0 to 2.* -1 to 1.*a\.npz"),
    ],
)
def test_wrong_arrays_are_reported_with_the_values(tmp_path, arrays, values):
    with pytest.raises(ValueError, match=values) as error:
        read_npz_images(save_arrays(tmp_path, **arrays))
    assert "a.npz" in str(error.value)


def test_a_damaged_file_is_reported(tmp_path):
    (tmp_path / "b.npz").write_bytes(b"PK nothing")
    with pytest.raises(ValueError, match=r"b\.npz"):
        read_npz_images(tmp_path / "b.npz")


@pytest.mark.parametrize("groups", [{}, {"sample": np.array("one")}, {"sample": np.arange(5)}])
def test_groups_must_have_one_entry_per_image(tmp_path, groups):
    with pytest.raises(ValueError, match=r"a\.npz.*'sample'.*6 images"):
        read_npz_images(save_arrays(tmp_path, x=GREY, y=LABELS, **groups), group="sample")


@pytest.mark.parametrize("kind", [np.int32, np.uint32, np.int64, np.uint64])
@pytest.mark.parametrize("white", [1, 255, 65535])
def test_wide_integers_are_divided_by_the_first_limit_that_no_pixel_exceeds(tmp_path, kind, white):
    mask = GREY > 99
    data = read_npz_images(save_arrays(tmp_path, x=(mask * white).astype(kind), y=LABELS))
    assert torch.equal(data.images, as_tensor(mask))


def test_all_parts_are_divided_by_the_same_value(tmp_path):
    dark = np.minimum(GREY, 1).astype(int)
    path = save_arrays(tmp_path, x_train=GREY.astype(int), y_train=LABELS, x_test=dark, y_test=LABELS)
    assert torch.equal(read_npz_images(path).images, as_tensor(np.concatenate([GREY, dark])) / 255)


def test_parts_of_different_sizes_are_resized_to_the_median(tmp_path):
    parts = {"x_train": GREY, "y_train": LABELS, "x_test": np.zeros((3, 20, 14), np.uint8), "y_test": LABELS[:3]}
    data = read_npz_images(save_arrays(tmp_path, **parts))
    assert data.images.shape == (9, 1, 9, 9)
    assert torch.equal(data.images[:6], as_tensor(GREY) / 255)
    assert read_npz_images(save_arrays(tmp_path, **parts), size=12).images.shape == (9, 1, 12, 12)


def test_parts_in_grey_and_in_colour_become_grey(tmp_path):
    colour = np.repeat(GREY[..., None], 3, axis=-1)
    path = save_arrays(tmp_path, x_train=GREY, y_train=LABELS, x_test=colour, y_test=LABELS)
    assert read_npz_images(path).images.shape == (12, 1, 9, 9)


def test_bytes_and_whole_numbers_are_labels(tmp_path):
    data = read_npz_images(save_arrays(tmp_path, x=GREY, y=np.array([b"b", b"a"] * 3)))
    assert data.class_names == ("a", "b")
    names = np.array([b"x", b"y", b"z"])
    data = read_npz_images(save_arrays(tmp_path, x=GREY, y=LABELS.astype(float), class_names=names))
    assert data.class_names == ("x", "y", "z")
    assert data.labels == tuple(LABELS)


def test_arrays_that_are_not_used_are_not_read(tmp_path):
    objects = np.array([{}], dtype=object)
    assert len(read_npz_images(save_arrays(tmp_path, x=GREY, y=LABELS, note=objects)).labels) == 6


@pytest.mark.parametrize("kind", ["u1", "i8", "f4"])
@pytest.mark.parametrize("color", [False, True])
def test_blocks_and_temporary_files_give_the_same_images(tmp_path, monkeypatch, kind, color):
    colour = RNG.integers(0, 2, (6, 8, 12, 3)).astype(kind)
    path = save_arrays(tmp_path, x=colour, y=LABELS)
    expected = read_npz_images(path, 9, color).images.clone()
    monkeypatch.setattr(npz_file, "BLOCK_BYTES", 1)
    monkeypatch.setattr(mapped_images, "MAX_BYTES_IN_MEMORY", 1)
    assert torch.equal(read_npz_images(path, 9, color).images, expected)


def test_labels_that_are_too_large_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(npz_data, "MAX_LABEL_BYTES", 47)
    with pytest.raises(ValueError, match=r"'y' in .*a\.npz.*48 bytes"):
        read_npz_images(save_arrays(tmp_path, x=GREY, y=LABELS))
