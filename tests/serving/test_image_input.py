import io

import numpy as np
import pytest
import torch
from PIL import Image

from tigranet.data.image_errors import UnreadableImageError
from tigranet.data.letterbox import read_letterboxed
from tigranet.serving import image_input
from tigranet.serving.image_input import prepare_image, prepare_rotated_image


def encoded(array, kind="PNG"):
    file = io.BytesIO()
    Image.fromarray(array).save(file, kind)
    return file.getvalue()


@pytest.mark.parametrize("in_maps", [1, 3])
def test_an_array_its_file_in_memory_and_its_file_on_disk_give_the_same_image(pixels, in_maps, tmp_path):
    content = encoded(pixels[0])
    path = tmp_path / "image.png"
    path.write_bytes(content)
    ((_, expected),) = read_letterboxed([path], 12, color=in_maps > 1)
    for image in (pixels[0], content):
        torch.testing.assert_close(prepare_image(image, 12, in_maps), expected, rtol=0, atol=0)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF"])
def test_every_format_is_read_from_memory(pixels, kind):
    image = prepare_image(encoded(pixels[0], kind), 12, 1)
    assert image.shape == (1, 12, 12)
    assert 0 <= image.min() < image.max() <= 1


def test_the_type_of_the_pixels_tells_white():
    eight = np.random.default_rng(0).integers(0, 256, (9, 9), dtype=np.uint8)
    expected = prepare_image(eight, 9, 1)
    for same in (eight.astype(np.uint16) * 257, eight / 255, (eight / np.float32(255)), eight.astype(">u2") * 257):
        torch.testing.assert_close(prepare_image(same, 9, 1), expected)
    mask = eight > 128
    torch.testing.assert_close(prepare_image(mask, 9, 1)[0], torch.from_numpy(mask).float())
    assert prepare_image(3 * (eight / 255) - 1, 9, 1).max() == 1  # other floating-point ranges are scaled


def test_a_turned_array_is_a_turned_image(pixels):
    image, turned = (prepare_image(array, 12, 3) for array in (pixels[0], np.rot90(pixels[0])))
    torch.testing.assert_close(turned, torch.rot90(image, 1, (1, 2)), rtol=0, atol=1e-6)


def test_quarter_turns_of_a_square_are_prepared_alike_bit_for_bit(pixels):
    square = np.ascontiguousarray(pixels[0][:14])
    prepared = [prepare_rotated_image(encoded(np.rot90(square, turns)), 9, 3) for turns in range(4)]
    assert {(image.quarter_turns + turns) % 4 for turns, image in enumerate(prepared)} == {prepared[0].quarter_turns}
    for image in prepared:
        assert torch.equal(image.image, prepared[0].image)
    upright = torch.rot90(prepared[0].image, -prepared[0].quarter_turns, (1, 2))
    torch.testing.assert_close(upright, prepare_image(square, 9, 3), rtol=0, atol=1e-6)


def test_large_images_and_those_that_are_not_square_are_not_rotated(pixels, monkeypatch):
    monkeypatch.setattr(image_input, "MAX_CANONICAL_PIXELS", 100)
    for array in (pixels[0], pixels[0][:14]):
        for turns in range(4):
            image = prepare_rotated_image(np.rot90(array, turns), 9, 1)
            assert image.quarter_turns == 0
            assert torch.equal(image.image, prepare_image(np.rot90(array, turns), 9, 1))


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        (np.zeros((4, 4), np.int64), "int64"),
        (np.zeros((4, 4), complex), "complex"),
        (np.array(["a", "b"]), "<U1"),
        (np.zeros(16), r"\(16,\)"),
        (np.zeros((4, 4, 2)), r"\(4, 4, 2\)"),
        (np.zeros((3, 8, 8)), r"\(3, 8, 8\)"),
        (np.zeros((0, 4)), "no pixels"),
        (np.full((4, 4), np.nan), "NaN"),
        (np.full((4, 4), np.inf), "infinity"),
        (np.array([[0.0, 1e300]]), "float32"),
        (np.zeros((30, 40)), "30 x 40"),
        (b"", "empty"),
        (b"GIF89a", "decoded|not an image"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "decoded|not an image"),
        (encoded(np.zeros((30, 40), np.uint8)), "30 x 40"),
        (encoded(np.zeros((30, 40), np.uint8), "TIFF"), "30 x 40"),
        (encoded(np.random.default_rng(0).integers(0, 256, (20, 20), dtype=np.uint8))[:200], "decoded|truncated"),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_reason(image, reason):
    with pytest.raises(UnreadableImageError, match=reason):
        prepare_image(image, 12, 1, max_pixels=1000)


def test_a_colour_network_reads_grey_images_in_three_channels_as_for_files():
    for image in (np.full((4, 4), 51, np.uint8), encoded(np.full((4, 4), 51, np.uint8))):
        assert prepare_image(image, 12, 3).tolist() == torch.full((3, 12, 12), 0.2).tolist()
        with pytest.raises(UnreadableImageError, match="has 1 channels, the model reads 4"):
            prepare_image(image, 12, 4)
