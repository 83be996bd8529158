import numpy as np
import pytest
import tifffile
from PIL import Image

from tigranet.data import image_io
from tigranet.data.image_io import UnreadableImageError, read_image

RNG = np.random.default_rng(0)
GREY = RNG.integers(0, 256, (5, 7), dtype=np.uint8)
RGB = RNG.integers(0, 256, (5, 7, 3), dtype=np.uint8)
LUMINANCE = (RGB @ np.array([0.299, 0.587, 0.114]))[..., None] / 255


def close(came, wanted, atol=1e-6):
    assert came.dtype == np.float32
    np.testing.assert_allclose(came, wanted, atol=atol)


@pytest.mark.parametrize("suffix", [".png", ".bmp", ".gif", ".tif", ".tiff", ".PNG"])
def test_grey_bytes(tmp_path, suffix):
    path = tmp_path / f"image{suffix}"
    tifffile.imwrite(path, GREY) if suffix.startswith(".t") else Image.fromarray(GREY).save(path)
    close(read_image(path), GREY[..., None] / 255)


@pytest.mark.parametrize("suffix", [".png", ".bmp", ".tif"])
def test_colour_is_kept_or_made_grey(tmp_path, suffix):
    path = tmp_path / f"image{suffix}"
    Image.fromarray(RGB).save(path)
    close(read_image(path, color=True), RGB / 255)
    close(read_image(path), LUMINANCE)


@pytest.mark.parametrize("suffix", [".jpg", ".jpeg", ".webp"])
def test_lossy_files_are_close(tmp_path, suffix):
    path = tmp_path / f"image{suffix}"
    smooth = np.add.outer(np.arange(40), np.arange(40)).astype(np.uint8)
    Image.fromarray(smooth).save(path, quality=95)
    close(read_image(path), smooth[..., None] / 255, atol=0.03)


def test_sixteen_bits_keep_their_depth(tmp_path):
    deep = RNG.integers(0, 65536, (5, 7), dtype=np.uint16)
    Image.fromarray(deep).save(tmp_path / "deep.png")
    tifffile.imwrite(tmp_path / "deep.tif", deep)
    for name in ("deep.png", "deep.tif"):
        close(read_image(tmp_path / name), deep[..., None] / 65535)


@pytest.mark.parametrize("kind", [np.int32, np.uint32, np.int64, np.uint64])
def test_wider_whole_numbers_are_divided_as_if_of_sixteen_bits(tmp_path, kind):
    deep = RNG.integers(0, 65536, (5, 7)).astype(kind)
    tifffile.imwrite(tmp_path / "wide.tif", deep)
    close(read_image(tmp_path / "wide.tif"), deep[..., None] / 65535)
    tifffile.imwrite(tmp_path / "wider.tif", np.full((5, 7), 65536, kind))
    with pytest.raises(UnreadableImageError, match=r"to 65536, .*: divide them to .*, or save them as uint8"):
        read_image(tmp_path / "wider.tif")


def test_wide_numbers_below_0_are_refused(tmp_path):
    tifffile.imwrite(tmp_path / "below.tif", np.full((5, 7), -1, np.int32))
    with pytest.raises(UnreadableImageError, match="from -1 to -1"):
        read_image(tmp_path / "below.tif")


def test_floating_point_is_taken_as_it_is_or_scaled_from_its_range(tmp_path):
    unit = RNG.random((5, 7)).astype(np.float32)
    tifffile.imwrite(tmp_path / "unit.tif", unit)
    close(read_image(tmp_path / "unit.tif"), unit[..., None])
    tifffile.imwrite(tmp_path / "wide.tif", 100 * unit - 30)
    close(read_image(tmp_path / "wide.tif"), (unit[..., None] - unit.min()) / np.ptp(unit), atol=1e-5)
    tifffile.imwrite(tmp_path / "flat.tif", np.full((5, 7), 9, np.float32))
    close(read_image(tmp_path / "flat.tif"), np.zeros((5, 7, 1)))


def test_pages_and_planes_are_channels(tmp_path):
    stack = RNG.integers(0, 256, (4, 5, 7), dtype=np.uint8)
    tifffile.imwrite(tmp_path / "pages.tif", stack, photometric="minisblack")
    close(read_image(tmp_path / "pages.tif", color=True), np.moveaxis(stack, 0, 2) / 255)
    close(read_image(tmp_path / "pages.tif"), stack.mean(0)[..., None] / 255)
    tifffile.imwrite(tmp_path / "planes.tif", np.moveaxis(RGB, 2, 0), photometric="rgb", planarconfig="separate")
    close(read_image(tmp_path / "planes.tif", color=True), RGB / 255)


@pytest.mark.parametrize("suffix", [".png", ".tif"])
def test_palettes(tmp_path, suffix):
    palette = Image.fromarray(GREY // 64).convert("P")
    palette.putpalette([0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0, 255])
    palette.save(tmp_path / f"palette{suffix}")
    close(read_image(tmp_path / f"palette{suffix}", color=True), np.eye(4)[:, 1:][GREY // 64])


@pytest.mark.parametrize("suffix", [".jpg", ".tif"])
def test_cmyk(tmp_path, suffix):
    Image.new("CMYK", (7, 5), (0, 255, 255, 0)).save(tmp_path / f"cmyk{suffix}", quality=100)
    close(read_image(tmp_path / f"cmyk{suffix}", color=True), np.tile([1.0, 0, 0], (5, 7, 1)), atol=0.02)


@pytest.mark.parametrize("packing", ["tiff_lzw", "tiff_deflate", "packbits"])
def test_packed_tiff_of_every_kind(tmp_path, packing):
    file, deep = tmp_path / "packed.tif", 257 * GREY.astype(np.uint16)
    clear = np.dstack([RGB, np.where(GREY > 99, 255, 0).astype(np.uint8)])
    unit = GREY.astype(np.float32) / 255
    for image, wanted in (
        (GREY, GREY[..., None] / 255),
        (RGB, RGB / 255),
        (deep, GREY[..., None] / 255),
        (unit, unit[..., None]),
        (clear, RGB / 255 * (GREY > 99)[..., None]),
    ):
        Image.fromarray(image).save(file, compression=packing)
        close(read_image(file, color=True), wanted)
    pages = [Image.fromarray(part) for part in (GREY, GREY[::-1].copy(), RGB[..., 0].copy())]
    pages[0].save(file, compression=packing, save_all=True, append_images=pages[1:])
    close(read_image(file, color=True), np.dstack([np.asarray(page) for page in pages]) / 255)


def test_tiff_packed_as_jpeg_is_close(tmp_path):
    smooth = np.add.outer(np.arange(40), np.arange(40)).astype(np.uint8)
    for image in (smooth, np.dstack([smooth, 255 - smooth, smooth])):
        Image.fromarray(image).save(tmp_path / "lossy.tif", compression="jpeg", quality=95)
        close(read_image(tmp_path / "lossy.tif", color=True), image.reshape(40, 40, -1) / 255, atol=0.05)


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, bool])
def test_tiff_in_which_0_is_white(tmp_path, kind):
    largest = 1 if kind is bool else np.iinfo(kind).max
    values = (GREY > 99) if kind is bool else GREY.astype(kind)
    tifffile.imwrite(tmp_path / "white.tif", values, photometric="miniswhite")
    close(read_image(tmp_path / "white.tif"), 1 - values[..., None] / largest)


def test_transparency_and_bits(tmp_path):
    clear = np.dstack([RGB, np.where(GREY > 99, 255, 0).astype(np.uint8)])
    Image.fromarray(clear, "RGBA").save(tmp_path / "clear.png")
    close(read_image(tmp_path / "clear.png", color=True), RGB / 255 * (GREY > 99)[..., None])
    Image.fromarray(GREY > 99).save(tmp_path / "bits.png")
    close(read_image(tmp_path / "bits.png"), (GREY > 99)[..., None])


@pytest.mark.parametrize("planes", ["contig", "separate"])
@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.float32])
def test_transparency_of_tiff_is_on_black(tmp_path, planes, kind):
    full = 1 if kind == np.float32 else np.iinfo(kind).max
    alpha = np.dstack([RGB, GREY]) / 255
    stored = (alpha * full).astype(kind)
    file, wanted = tmp_path / "clear.tif", alpha[..., :3] * alpha[..., 3:]
    for extra, colour in (("unassalpha", wanted), ("assocalpha", alpha[..., :3])):
        pixels = stored if planes == "contig" else np.moveaxis(stored, 2, 0)
        tifffile.imwrite(file, pixels, photometric="rgb", planarconfig=planes, extrasamples=[extra])
        close(read_image(file, color=True), colour, atol=1e-4)
        close(read_image(file), colour @ np.array([[0.299], [0.587], [0.114]]), atol=1e-4)
    grey = stored[..., 2:] if planes == "contig" else np.moveaxis(stored[..., 2:], 2, 0)
    tifffile.imwrite(file, grey, photometric="minisblack", planarconfig=planes, extrasamples=["unassalpha"])
    for color in (True, False):
        close(read_image(file, color=color), alpha[..., 2:3] * alpha[..., 3:], atol=1e-4)


def test_an_opaque_tiff_is_as_bright_as_the_png(tmp_path):
    opaque = np.dstack([RGB, np.full_like(GREY, 255)])
    for name in ("opaque.png", "opaque.tif"):
        Image.fromarray(opaque).save(tmp_path / name)
        close(read_image(tmp_path / name), LUMINANCE)
    tifffile.imwrite(tmp_path / "float.tif", opaque.astype(np.float32), photometric="rgb", extrasamples=["unassalpha"])
    close(read_image(tmp_path / "float.tif", color=True), (RGB - RGB.min()) / np.ptp(RGB))


@pytest.mark.parametrize(("channels", "photometric"), [(2, "minisblack"), (4, "minisblack"), (4, "rgb"), (5, "rgb")])
def test_channels_that_are_no_transparency_stay_channels(tmp_path, channels, photometric):
    pixels = RNG.integers(0, 256, (5, 7, channels), dtype=np.uint8)
    extra = ["unspecified"] * (channels - (3 if photometric == "rgb" else 1))
    tifffile.imwrite(tmp_path / "some.tif", pixels, photometric=photometric, planarconfig="contig", extrasamples=extra)
    close(read_image(tmp_path / "some.tif", color=True), pixels / 255)


def test_the_first_frame_of_a_film(tmp_path):
    frames = [Image.fromarray(GREY), Image.fromarray(255 - GREY)]
    frames[0].save(tmp_path / "film.gif", save_all=True, append_images=frames[1:])
    close(read_image(tmp_path / "film.gif"), GREY[..., None] / 255)


def test_exif_says_which_side_is_up(tmp_path):
    image = Image.fromarray(np.repeat(np.repeat(GREY, 8, 0), 8, 1))
    exif = Image.Exif()
    exif[0x0112] = 6  # turn clockwise to see it upright
    image.save(tmp_path / "camera.jpg", exif=exif, quality=100)
    close(read_image(tmp_path / "camera.jpg"), np.rot90(np.asarray(image), -1)[..., None] / 255, atol=0.1)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("empty.png", b"", "the file is empty"),
        ("text.png", b"this is no image", "not an image of a kind that is read here"),
        ("text.tif", b"this is no image", "not an image of a kind that is read here"),
    ],
)
def test_broken_files_have_a_reason(tmp_path, name, content, reason):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UnreadableImageError, match=reason):
        read_image(tmp_path / name)


def test_a_file_that_ends_too_early_and_one_that_is_not_there(tmp_path):
    Image.fromarray(np.tile(RGB, (20, 20, 1))).save(tmp_path / "whole.png")
    cut = (tmp_path / "whole.png").read_bytes()[:-500]
    (tmp_path / "cut.png").write_bytes(cut)
    with pytest.raises(UnreadableImageError, match="cannot be decoded"):
        read_image(tmp_path / "cut.png")
    with pytest.raises(UnreadableImageError, match="No such file"):
        read_image(tmp_path / "none.png")


def test_a_wrong_suffix_does_not_matter(tmp_path):
    Image.fromarray(GREY).save(tmp_path / "really.png")
    (tmp_path / "really.png").rename(tmp_path / "image.jpg")
    close(read_image(tmp_path / "image.jpg"), GREY[..., None] / 255)


def test_a_bomb_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(image_io, "LARGEST", 30)
    Image.fromarray(GREY).save(tmp_path / "bomb.png")
    with pytest.raises(UnreadableImageError, match="has more than 30 pixels"):
        read_image(tmp_path / "bomb.png")
    tifffile.imwrite(tmp_path / "bomb.tif", np.tile(GREY, (4, 4)))
    with pytest.raises(UnreadableImageError, match="has 20 x 28 values, more than 120"):
        read_image(tmp_path / "bomb.tif")


def test_nan_is_no_light(tmp_path):
    tifffile.imwrite(tmp_path / "nan.tif", np.full((5, 7), np.nan, np.float32))
    with pytest.raises(UnreadableImageError, match="holds NaN or infinity"):
        read_image(tmp_path / "nan.tif")
