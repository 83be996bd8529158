import numpy as np
import pytest
import tifffile
from PIL import Image

from tigranet.data import image_io
from tigranet.data.image_io import UnreadableImageError, read_image
from tigranet.data.luminance import LUMINANCE_WEIGHTS

RNG = np.random.default_rng(0)
GREY = RNG.integers(0, 256, (5, 7), dtype=np.uint8)
RGB = RNG.integers(0, 256, (5, 7, 3), dtype=np.uint8)
GREY_OF_RGB = (RGB @ np.array(LUMINANCE_WEIGHTS))[..., None] / 255


def assert_pixels(actual, expected, atol=1e-6):
    assert actual.dtype == np.float32
    np.testing.assert_allclose(actual, expected, atol=atol)


@pytest.mark.parametrize("suffix", [".png", ".bmp", ".gif", ".tif", ".tiff", ".PNG"])
def test_grey_images_of_bytes(tmp_path, suffix):
    path = tmp_path / f"image{suffix}"
    tifffile.imwrite(path, GREY) if suffix.startswith(".t") else Image.fromarray(GREY).save(path)
    assert_pixels(read_image(path), GREY[..., None] / 255)


@pytest.mark.parametrize("suffix", [".png", ".bmp", ".tif"])
def test_colour_is_kept_or_converted_to_luminance(tmp_path, suffix):
    path = tmp_path / f"image{suffix}"
    Image.fromarray(RGB).save(path)
    assert_pixels(read_image(path, color=True), RGB / 255)
    assert_pixels(read_image(path), GREY_OF_RGB)


@pytest.mark.parametrize("suffix", [".jpg", ".jpeg", ".webp"])
def test_lossy_formats_are_read_approximately(tmp_path, suffix):
    path = tmp_path / f"image{suffix}"
    smooth = np.add.outer(np.arange(40), np.arange(40)).astype(np.uint8)
    Image.fromarray(smooth).save(path, quality=95)
    assert_pixels(read_image(path), smooth[..., None] / 255, atol=0.03)


def test_16_bit_images_keep_their_depth(tmp_path):
    deep = RNG.integers(0, 65536, (5, 7), dtype=np.uint16)
    Image.fromarray(deep).save(tmp_path / "deep.png")
    tifffile.imwrite(tmp_path / "deep.tif", deep)
    for name in ("deep.png", "deep.tif"):
        assert_pixels(read_image(tmp_path / name), deep[..., None] / 65535)


@pytest.mark.parametrize("kind", [np.int32, np.uint32, np.int64, np.uint64])
def test_wider_integers_are_divided_like_16_bits(tmp_path, kind):
    deep = RNG.integers(0, 65536, (5, 7)).astype(kind)
    tifffile.imwrite(tmp_path / "wide.tif", deep)
    assert_pixels(read_image(tmp_path / "wide.tif"), deep[..., None] / 65535)
    tifffile.imwrite(tmp_path / "wider.tif", np.full((5, 7), 65536, kind))
    with pytest.raises(UnreadableImageError, match=r"from 65536 to 65536.*65535.*uint16"):
        read_image(tmp_path / "wider.tif")


def test_negative_wide_integers_are_refused(tmp_path):
    tifffile.imwrite(tmp_path / "below.tif", np.full((5, 7), -1, np.int32))
    with pytest.raises(UnreadableImageError, match="from -1 to -1"):
        read_image(tmp_path / "below.tif")


def test_floating_point_is_unchanged_in_the_unit_range_and_rescaled_otherwise(tmp_path):
    unit = RNG.random((5, 7)).astype(np.float32)
    tifffile.imwrite(tmp_path / "unit.tif", unit)
    assert_pixels(read_image(tmp_path / "unit.tif"), unit[..., None])
    tifffile.imwrite(tmp_path / "wide.tif", 100 * unit - 30)
    assert_pixels(read_image(tmp_path / "wide.tif"), (unit[..., None] - unit.min()) / np.ptp(unit), atol=1e-5)
    tifffile.imwrite(tmp_path / "flat.tif", np.full((5, 7), 9, np.float32))
    assert_pixels(read_image(tmp_path / "flat.tif"), np.zeros((5, 7, 1)))


def test_pages_and_planes_of_tiff_are_channels(tmp_path):
    stack = RNG.integers(0, 256, (4, 5, 7), dtype=np.uint8)
    tifffile.imwrite(tmp_path / "pages.tif", stack, photometric="minisblack")
    assert_pixels(read_image(tmp_path / "pages.tif", color=True), np.moveaxis(stack, 0, 2) / 255)
    assert_pixels(read_image(tmp_path / "pages.tif"), stack.mean(0)[..., None] / 255)
    tifffile.imwrite(tmp_path / "planes.tif", np.moveaxis(RGB, 2, 0), photometric="rgb", planarconfig="separate")
    assert_pixels(read_image(tmp_path / "planes.tif", color=True), RGB / 255)


@pytest.mark.parametrize("suffix", [".png", ".tif"])
def test_palettes_are_converted_to_colours(tmp_path, suffix):
    palette = Image.fromarray(GREY // 64).convert("P")
    palette.putpalette([0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0, 255])
    palette.save(tmp_path / f"palette{suffix}")
    assert_pixels(read_image(tmp_path / f"palette{suffix}", color=True), np.eye(4)[:, 1:][GREY // 64])


@pytest.mark.parametrize("suffix", [".jpg", ".tif"])
def test_cmyk_is_converted_to_rgb(tmp_path, suffix):
    Image.new("CMYK", (7, 5), (0, 255, 255, 0)).save(tmp_path / f"cmyk{suffix}", quality=100)
    assert_pixels(read_image(tmp_path / f"cmyk{suffix}", color=True), np.tile([1.0, 0, 0], (5, 7, 1)), atol=0.02)


@pytest.mark.parametrize("compression", ["tiff_lzw", "tiff_deflate", "packbits"])
def test_compressed_tiff_of_every_kind(tmp_path, compression):
    file, deep = tmp_path / "compressed.tif", 257 * GREY.astype(np.uint16)
    transparent = np.dstack([RGB, np.where(GREY > 99, 255, 0).astype(np.uint8)])
    unit = GREY.astype(np.float32) / 255
    for image, expected in (
        (GREY, GREY[..., None] / 255),
        (RGB, RGB / 255),
        (deep, GREY[..., None] / 255),
        (unit, unit[..., None]),
        (transparent, RGB / 255 * (GREY > 99)[..., None]),
    ):
        Image.fromarray(image).save(file, compression=compression)
        assert_pixels(read_image(file, color=True), expected)
    pages = [Image.fromarray(part) for part in (GREY, GREY[::-1].copy(), RGB[..., 0].copy())]
    pages[0].save(file, compression=compression, save_all=True, append_images=pages[1:])
    assert_pixels(read_image(file, color=True), np.dstack([np.asarray(page) for page in pages]) / 255)


def test_tiff_with_jpeg_compression_is_read_approximately(tmp_path):
    smooth = np.add.outer(np.arange(40), np.arange(40)).astype(np.uint8)
    for image in (smooth, np.dstack([smooth, 255 - smooth, smooth])):
        Image.fromarray(image).save(tmp_path / "lossy.tif", compression="jpeg", quality=95)
        assert_pixels(read_image(tmp_path / "lossy.tif", color=True), image.reshape(40, 40, -1) / 255, atol=0.05)


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, bool])
def test_tiff_with_white_as_zero_is_inverted(tmp_path, kind):
    largest = 1 if kind is bool else np.iinfo(kind).max
    values = (GREY > 99) if kind is bool else GREY.astype(kind)
    tifffile.imwrite(tmp_path / "white.tif", values, photometric="miniswhite")
    assert_pixels(read_image(tmp_path / "white.tif"), 1 - values[..., None] / largest)


def test_transparent_pixels_are_black(tmp_path):
    transparent = np.dstack([RGB, np.where(GREY > 99, 255, 0).astype(np.uint8)])
    Image.fromarray(transparent, "RGBA").save(tmp_path / "transparent.png")
    assert_pixels(read_image(tmp_path / "transparent.png", color=True), RGB / 255 * (GREY > 99)[..., None])


def test_images_of_one_bit_are_black_and_white(tmp_path):
    Image.fromarray(GREY > 99).save(tmp_path / "bits.png")
    assert_pixels(read_image(tmp_path / "bits.png"), (GREY > 99)[..., None])


@pytest.mark.parametrize("planes", ["contig", "separate"])
@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.float32])
def test_transparent_tiff_is_composed_with_black(tmp_path, planes, kind):
    full = 1 if kind == np.float32 else np.iinfo(kind).max
    alpha = np.dstack([RGB, GREY]) / 255
    stored = (alpha * full).astype(kind)
    file, composed = tmp_path / "transparent.tif", alpha[..., :3] * alpha[..., 3:]
    for extra, colour in (("unassalpha", composed), ("assocalpha", alpha[..., :3])):
        pixels = stored if planes == "contig" else np.moveaxis(stored, 2, 0)
        tifffile.imwrite(file, pixels, photometric="rgb", planarconfig=planes, extrasamples=[extra])
        assert_pixels(read_image(file, color=True), colour, atol=1e-4)
        assert_pixels(read_image(file), colour @ np.array(LUMINANCE_WEIGHTS)[:, None], atol=1e-4)
    grey = stored[..., 2:] if planes == "contig" else np.moveaxis(stored[..., 2:], 2, 0)
    tifffile.imwrite(file, grey, photometric="minisblack", planarconfig=planes, extrasamples=["unassalpha"])
    for color in (True, False):
        assert_pixels(read_image(file, color=color), alpha[..., 2:3] * alpha[..., 3:], atol=1e-4)


def test_an_opaque_tiff_is_as_bright_as_the_png(tmp_path):
    opaque = np.dstack([RGB, np.full_like(GREY, 255)])
    for name in ("opaque.png", "opaque.tif"):
        Image.fromarray(opaque).save(tmp_path / name)
        assert_pixels(read_image(tmp_path / name), GREY_OF_RGB)
    tifffile.imwrite(tmp_path / "float.tif", opaque.astype(np.float32), photometric="rgb", extrasamples=["unassalpha"])
    assert_pixels(read_image(tmp_path / "float.tif", color=True), (RGB - RGB.min()) / np.ptp(RGB))


@pytest.mark.parametrize(("channels", "photometric"), [(2, "minisblack"), (4, "minisblack"), (4, "rgb"), (5, "rgb")])
def test_channels_other_than_transparency_stay_channels(tmp_path, channels, photometric):
    pixels = RNG.integers(0, 256, (5, 7, channels), dtype=np.uint8)
    extra = ["unspecified"] * (channels - (3 if photometric == "rgb" else 1))
    tifffile.imwrite(tmp_path / "some.tif", pixels, photometric=photometric, planarconfig="contig", extrasamples=extra)
    assert_pixels(read_image(tmp_path / "some.tif", color=True), pixels / 255)


def test_the_first_frame_of_an_animation_is_read(tmp_path):
    frames = [Image.fromarray(GREY), Image.fromarray(255 - GREY)]
    frames[0].save(tmp_path / "animation.gif", save_all=True, append_images=frames[1:])
    assert_pixels(read_image(tmp_path / "animation.gif"), GREY[..., None] / 255)


def test_images_are_rotated_as_their_exif_orientation_says(tmp_path):
    image = Image.fromarray(np.repeat(np.repeat(GREY, 8, 0), 8, 1))
    exif = Image.Exif()
    exif[0x0112] = 6  # upright after a clockwise quarter turn
    image.save(tmp_path / "camera.jpg", exif=exif, quality=100)
    assert_pixels(read_image(tmp_path / "camera.jpg"), np.rot90(np.asarray(image), -1)[..., None] / 255, atol=0.1)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("empty.png", b"", "the file is empty"),
        ("text.png", b"this is no image", "not an image"),
        ("text.tif", b"this is no image", "not an image"),
    ],
)
def test_unreadable_files_have_a_reason(tmp_path, name, content, reason):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UnreadableImageError, match=reason):
        read_image(tmp_path / name)


def test_a_truncated_file_cannot_be_decoded(tmp_path):
    Image.fromarray(np.tile(RGB, (20, 20, 1))).save(tmp_path / "complete.png")
    (tmp_path / "truncated.png").write_bytes((tmp_path / "complete.png").read_bytes()[:-500])
    with pytest.raises(UnreadableImageError, match="cannot be decoded"):
        read_image(tmp_path / "truncated.png")


def test_a_missing_file_has_the_reason_of_the_operating_system(tmp_path):
    with pytest.raises(UnreadableImageError, match="No such file"):
        read_image(tmp_path / "none.png")


def test_the_format_is_detected_from_the_content(tmp_path):
    Image.fromarray(GREY).save(tmp_path / "image.png")
    (tmp_path / "image.png").rename(tmp_path / "image.jpg")
    assert_pixels(read_image(tmp_path / "image.jpg"), GREY[..., None] / 255)


def test_an_image_of_too_many_pixels_is_not_decompressed(tmp_path, monkeypatch):
    monkeypatch.setattr(image_io, "MAX_PIXELS", 30)
    Image.fromarray(GREY).save(tmp_path / "bomb.png")
    with pytest.raises(UnreadableImageError, match="more than 30 pixels"):
        read_image(tmp_path / "bomb.png")
    tifffile.imwrite(tmp_path / "bomb.tif", np.tile(GREY, (4, 4)))
    with pytest.raises(UnreadableImageError, match="20 x 28 values, more than 120"):
        read_image(tmp_path / "bomb.tif")


def test_nan_is_refused(tmp_path):
    tifffile.imwrite(tmp_path / "nan.tif", np.full((5, 7), np.nan, np.float32))
    with pytest.raises(UnreadableImageError, match="NaN"):
        read_image(tmp_path / "nan.tif")
