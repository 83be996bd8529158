import os
import struct
import subprocess
import sys
import threading
import zlib

import numpy as np
import pytest
import tifffile
from PIL import Image

from image_corpus import whole_image, write_corpus
from tigranet.data import image_io, pillow_pixels, pixel_rows, tiff_pixels
from tigranet.data.decode_budget import ByteBudget
from tigranet.data.image_errors import UnreadableImageError
from tigranet.data.image_io import read_image, read_image_size
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
    monkeypatch.setattr(pillow_pixels, "MAX_PIXELS", 30)
    monkeypatch.setattr(tiff_pixels, "MAX_VALUES", 120)
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


@pytest.mark.filterwarnings("ignore:.*deprecated")
@pytest.mark.parametrize("num_values", [40, 2**18])
def test_strips_give_the_bits_of_the_whole_image(tmp_path, monkeypatch, num_values):
    monkeypatch.setattr(pixel_rows, "STRIP_VALUES", num_values)
    paths = write_corpus(tmp_path, [(23, 17)] if num_values > 40 else [(16, 40)])
    assert len(paths) > 100
    for path in paths:
        for color in (False, True):
            np.testing.assert_array_equal(read_image(path, color), whole_image(path, color), err_msg=path.name)


def test_a_png_that_contains_postscript_runs_no_program(tmp_path, monkeypatch):
    Image.new("RGB", (20, 20)).save(tmp_path / "image.eps")
    (tmp_path / "image.eps").rename(tmp_path / "image.png")
    monkeypatch.setattr(subprocess, "check_call", pytest.fail)
    monkeypatch.setattr(subprocess, "Popen", pytest.fail)
    for read in (read_image, read_image_size):
        with pytest.raises(UnreadableImageError, match="not an image"):
            read(tmp_path / "image.png")


def test_an_image_that_takes_too_much_memory_is_refused_from_its_header(tmp_path, monkeypatch):
    monkeypatch.setattr(image_io, "DECODE_BUDGET", ByteBudget(20_000_000))
    zeros = np.zeros((2000, 2000), np.uint8)
    Image.fromarray(zeros).save(tmp_path / "a.png")
    tifffile.imwrite(tmp_path / "b.tif", zeros.astype(float), compression="zlib")
    tifffile.imwrite(tmp_path / "c.tif", zeros[:8, :8], compression="zlib", tile=(4096, 4096))
    for name in ("a.png", "b.tif", "c.tif"):
        with pytest.raises(UnreadableImageError, match="MB of memory to decode, more than 20 MB"):
            read_image(tmp_path / name)
    tifffile.imwrite(tmp_path / "d.tif", zeros[:8, :8])
    assert read_image(tmp_path / "d.tif").shape == (8, 8, 1)


def test_threads_share_one_budget_and_free_their_image_before_the_next(tmp_path, monkeypatch):
    Image.fromarray(np.zeros((500, 500, 3), np.uint8)).save(tmp_path / "a.png")
    budget = ByteBudget(20_000_000)  # for one image
    monkeypatch.setattr(image_io, "DECODE_BUDGET", budget)
    active, largest, original = 0, 0, image_io.unit_strips
    lock = threading.Lock()

    def counted(*arguments):
        nonlocal active, largest
        with lock:
            active += 1
            largest = max(largest, active)
        yield from original(*arguments)
        with lock:
            active -= 1

    monkeypatch.setattr(image_io, "unit_strips", counted)
    threads = [threading.Thread(target=read_image, args=(tmp_path / "a.png",)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    assert largest == 1


def test_a_file_that_grows_while_it_is_read_gets_no_more_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(image_io, "MAX_HELD_HEADER_BYTES", 0)
    Image.fromarray(RNG.integers(0, 256, (200, 200), dtype=np.uint8)).save(tmp_path / "a.png")
    original = pillow_pixels.open_with_pillow

    def open_and_replace(file):
        image = original(file)
        Image.new("L", (3000, 3000)).save(tmp_path / "a.png")  # writes into the file that the reader has open
        return image

    monkeypatch.setattr(pillow_pixels, "open_with_pillow", open_and_replace)
    with pytest.raises(UnreadableImageError, match=r"changed|truncated"):
        read_image(tmp_path / "a.png")


@pytest.mark.parametrize("name", ["pipe.png", "pipe.tif"])
def test_a_pipe_is_refused_and_not_waited_for(tmp_path, name):
    os.mkfifo(tmp_path / name)
    for read in (read_image, read_image_size):
        with pytest.raises(UnreadableImageError, match="pipe"):
            read(tmp_path / name)


def test_odd_shapes_are_read_or_refused_with_a_reason(tmp_path):
    tifffile.imwrite(tmp_path / "complex.tif", np.ones((5, 7), np.complex64))
    with pytest.raises(UnreadableImageError, match="complex"):
        read_image(tmp_path / "complex.tif")
    (tmp_path / "none.tif").write_bytes(b"II*\0" + struct.pack("<I", 0))
    with pytest.raises(UnreadableImageError, match=r"no pages|cannot be decoded"):
        read_image(tmp_path / "none.tif")
    tifffile.imwrite(tmp_path / "half.tif", np.full((1, 7), 0.5, np.float16))
    assert_pixels(read_image(tmp_path / "half.tif"), np.full((1, 7, 1), 0.5))
    tifffile.imwrite(tmp_path / "large.tif", np.full((5, 7), 1e300))
    with pytest.raises(UnreadableImageError, match="float32"):
        read_image(tmp_path / "large.tif")
    rows = np.zeros((1, 64_000_000 // 8), np.uint8)
    png = b"\x89PNG\r\n\x1a\n"
    for kind, data in (
        (b"IHDR", struct.pack(">IIBBBBB", rows.size * 8, 1, 1, 0, 0, 0, 0)),
        (b"IDAT", zlib.compress(b"\0" + rows.tobytes())),
        (b"IEND", b""),
    ):
        png += struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    (tmp_path / "long.png").write_bytes(png)
    with pytest.raises(UnreadableImageError, match="MB of memory"):
        read_image(tmp_path / "long.png")


def test_a_reason_does_not_repeat_odd_characters_of_the_name(tmp_path):
    path = tmp_path / os.fsdecode(b"a\nb\xff.tif")
    tifffile.imwrite(tmp_path / "c.tif", GREY, compression="zlib")
    path.write_bytes((tmp_path / "c.tif").read_bytes()[:-20])
    with pytest.raises(UnreadableImageError) as error:
        read_image(path)
    assert str(error.value).isprintable()


MEASURED = """
import resource, sys, warnings
from pathlib import Path
from tigranet.data.letterbox import read_letterboxed
for path, image in read_letterboxed(sorted(Path(sys.argv[1]).iterdir()), 16, color=True):
    print(path.name, getattr(image, "reason", "read"))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def test_hostile_files_in_all_threads_stay_within_the_memory_limit(tmp_path):
    """Small files that unpack to 240 MB each, of which decoding takes several copies, and one that claims 3 GB."""
    tifffile.imwrite(tmp_path / "0.tif", np.zeros((7500, 4000)), compression="zlib", rowsperstrip=300)
    for number in range(1, 4):
        os.link(tmp_path / "0.tif", tmp_path / f"{number}.tif")
    shape = '{"shape": [1000000, 400, 8]}'
    tifffile.imwrite(tmp_path / "6.tif", np.zeros((400, 8), np.uint8), description=shape, metadata=None)
    command = [sys.executable, "-c", MEASURED, str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    *results, peak = run.stdout.splitlines()
    assert results[:4] == [f"{number}.tif read" for number in range(4)]
    assert "1000000 x 400 x 8" in results[4]
    assert 300 < int(peak) < 1000  # without a limit: 1,500
    assert not run.stderr
