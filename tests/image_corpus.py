"""Write image files of every supported mode, type and layout for tests."""

import numpy as np
import tifffile
from PIL import Image, ImageOps

WEIGHTS = np.array([0.299, 0.587, 0.114], dtype=np.float32)[:, None]


def write_corpus(folder, shapes, seed=0):
    """Write about 115 image files per shape, and return their paths."""
    rng = np.random.default_rng(seed)
    for shape in shapes:
        name = "{}x{}".format(*shape)
        _write_pillow(folder, name, shape, rng)
        _write_tiff(folder, name, shape, rng)
    return sorted(folder.iterdir())


def _write_pillow(folder, name, shape, rng):
    rgba = rng.integers(0, 256, (*shape, 4), dtype=np.uint8)
    grey, rgb = Image.fromarray(rgba[..., 0]), Image.fromarray(rgba[..., :3])
    images = {
        "l": grey,
        "rgb": rgb,
        "rgba": Image.fromarray(rgba),
        "la": Image.fromarray(rgba[..., :2], "LA"),
        "p": rgb.quantize(16),
        "bits": Image.fromarray(rgba[..., 0] > 99),
        "deep": Image.fromarray(rng.integers(0, 65536, shape, dtype=np.uint16)),
    }
    for mode, image in images.items():
        image.save(folder / f"{name}-{mode}.png")
    images["p"].save(folder / f"{name}-clear.png", transparency=3)
    rgb.save(folder / f"{name}-clear-rgb.png", transparency=tuple(rgba[0, 0, :3].tolist()))
    grey.save(folder / f"{name}-frames.png", save_all=True, append_images=[rgb.convert("L")])
    for suffix in ("bmp", "gif", "webp", "jpg"):
        rgb.save(folder / f"{name}-rgb.{suffix}")
        grey.save(folder / f"{name}-l.{suffix}")
    images["rgba"].save(folder / f"{name}-rgba.webp", lossless=True)
    grey.save(folder / f"{name}-frames.gif", save_all=True, append_images=[rgb])
    rgb.save(folder / f"{name}-progressive.jpg", progressive=True)
    rgb.convert("CMYK").save(folder / f"{name}-cmyk.jpg")
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        rgb.save(folder / f"{name}-turned{orientation}.jpg", exif=exif)
        grey.save(folder / f"{name}-turned{orientation}.png", exif=exif)
    for mode in ("rgb", "l", "p", "bits"):
        images[mode].save(folder / f"{name}-{mode}-lzw.tif", compression="tiff_lzw")
    exif[0x0112] = 6
    rgb.save(folder / f"{name}-turned-lzw.tif", compression="tiff_lzw", exif=exif)
    rgb.convert("CMYK").save(folder / f"{name}-cmyk.tif")
    rgb.save(folder / f"{name}-packed.tif", compression="packbits")
    rgb.save(folder / f"{name}-jpeg.tif", compression="jpeg")
    grey.save(folder / f"{name}-pages-lzw.tif", compression="tiff_lzw", save_all=True, append_images=[grey, rgb])


def _write_tiff(folder, name, shape, rng):
    def write(kind, pixels, **options):
        tifffile.imwrite(folder / f"{name}-{kind}.tif", pixels, **options)

    for dtype in ("uint8", "uint16", "int8", "int16", "uint32", "int64"):
        for channels in (1, 3, 4, 9):
            values = rng.integers(0, 127, (*shape, channels)).astype(dtype)
            photometric = "rgb" if channels == 3 else "minisblack"
            if channels == 1:
                write(f"{dtype}-1", values[..., 0])
            else:
                write(f"{dtype}-{channels}", values, photometric=photometric, planarconfig="contig")
                planes = np.moveaxis(values, 2, 0).copy()
                write(f"{dtype}-{channels}-planes", planes, photometric=photometric, planarconfig="separate")
    for dtype in ("float16", "float32", "float64"):
        unit = rng.random((*shape, 3)).astype(dtype)
        write(f"{dtype}-unit", unit, photometric="rgb")
        write(f"{dtype}-scaled", 100 * unit - 30, photometric="rgb")
        write(f"{dtype}-flat", 9 + 0 * unit, photometric="rgb")
        write(f"{dtype}-zip", unit, photometric="rgb", compression="zlib")
    write("bool", rng.random(shape) > 0.5)
    values = rng.integers(0, 256, (*shape, 4), dtype=np.uint8)
    for extra in ("assocalpha", "unassalpha", "unspecified"):
        write(f"alpha-{extra}", values, photometric="rgb", extrasamples=[extra])
        write(f"alpha-float-{extra}", values.astype(np.float32), photometric="rgb", extrasamples=[extra])
    write("white", values[..., 0], photometric="miniswhite")
    write("tiles", values[..., :3], photometric="rgb", tile=(16, 16), compression="zlib")
    write("lzma", values[..., :3], photometric="rgb", compression="lzma")
    write("pages", np.moveaxis(values, 2, 0).copy(), photometric="minisblack")
    write("stack", rng.integers(0, 256, (2, 3, *shape), dtype=np.uint8), photometric="minisblack")
    write("big", values, bigtiff=True, byteorder=">", photometric="rgb", extrasamples=["unspecified"])
    if min(shape) > 1:
        write("ome", np.moveaxis(values, 2, 0).copy(), ome=True, photometric="minisblack")
        write("imagej", np.moveaxis(values, 2, 0).copy(), imagej=True)


def whole_image(path, color):
    """Decode an image file without strips and limits, as a reference."""
    pixels = _whole_tiff(path) if path.suffix == ".tif" else _whole_pillow(path)
    if color or pixels.shape[-1] == 1:
        return pixels
    return pixels @ WEIGHTS if pixels.shape[-1] == 3 else pixels.mean(-1, keepdims=True)


def _whole_pillow(path, num_pages=1):
    pages = []
    with Image.open(path) as file:
        for number in range(num_pages):
            file.seek(number)
            image = ImageOps.exif_transpose(file)
            image = image.convert("L") if image.mode == "1" else image
            if image.mode not in ("L", "F") and not image.mode.startswith("I"):
                image = image.convert("RGBA")
                image = Image.alpha_composite(Image.new("RGBA", image.size, (0, 0, 0, 255)), image).convert("RGB")
            pixels = np.asarray(image)
            pages.append(pixels if pixels.ndim == 3 else pixels[..., None])
    return _whole_unit_range(np.concatenate(pages, axis=2))


def _whole_tiff(path):
    with tifffile.TiffFile(path) as file:
        series = file.series[0]
        page, axes, extra = series.keyframe, series.axes, tuple(series.keyframe.extrasamples)
        channels = {0: 1, 1: 1, 2: 3}.get(int(page.photometric))
        try:
            pixels = series.asarray() if channels else None
        except ValueError:  # no decoder for LZW and JPEG
            pixels = None
        if pixels is None:
            return _whole_pillow(path, len(series.pages))
    if page.photometric == 0:
        pixels = ~pixels if pixels.dtype == bool else 255 - pixels
    pixels = np.moveaxis(pixels, (axes.index("Y"), axes.index("X")), (0, 1))
    pixels = pixels.reshape(*pixels.shape[:2], -1)
    if pixels.shape[2] - 1 == channels and extra in ((1,), (2,)):
        colours, alpha = _whole_unit_range(pixels[..., :channels]), pixels[..., channels:].astype(np.float32)
        largest = 255 if pixels.dtype == np.uint8 else max(np.float32(1), alpha.max())
        return colours if extra == (1,) else colours * np.clip(alpha / np.float32(largest), 0, 1)
    return _whole_unit_range(pixels)


def _whole_unit_range(pixels):
    if pixels.dtype.kind in "iu":
        white = np.iinfo(pixels.dtype).max if pixels.dtype.itemsize <= 2 else 65535
        return pixels.astype(np.float32) / np.float32(white)
    pixels = pixels.astype(np.float32)
    low, high = pixels.min(), pixels.max()
    return pixels if low >= 0 and high <= 1 else (pixels - low) / (high - low) if high > low else 0 * pixels
