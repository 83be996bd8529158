"""
Photographs at nine angles
==========================

Draw photographs at nine angles, each with the predicted label of a network that was trained on upright photographs.

The photographs are in one sub-folder per class; the first one of each class is drawn. It is put on a white square,
large enough that no rotation cuts off a part of it, and rotated at its full resolution. The network then classifies the
rotated files as it would classify any others.

Usage::

    python examples/rotated_photographs.py photographs/ picture.png pyramid-cifar10
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from matplotlib.figure import Figure
from PIL import Image, ImageOps

from tigranet.workflows.predict import predict

ANGLES = (0, 30, 60, 90, 135, 180, 225, 270, 330)
SIDE = 320  # of the rotated photographs in pixels
FILLED = 0.7  # part of this side that the object takes: less than 1 / sqrt(2), so that no rotation cuts it off
WHITE = (255, 255, 255, 255)
CORRECT_COLOUR, ERROR_COLOUR = "#0072b2", "#d55e00"  # distinguishable for colour-blind readers
MARKED_LINE_WIDTH = 2.5


def main(photographs: Path, picture: Path, model: str) -> None:
    """Save the picture and print how many predictions are right."""
    folders = sorted(path for path in photographs.iterdir() if path.is_dir())
    files = [min(path for path in folder.iterdir() if path.is_file()) for folder in folders]
    with TemporaryDirectory() as folder:
        rotated = [save_rotated(file, angle, Path(folder)) for file in files for angle in ANGLES]
        labels = [prediction.label for prediction in predict(model, rotated).predictions]
        draw(rotated, labels, [file.parent.name for file in files]).savefig(picture, dpi=120)
    expected = [file.parent.name for file in files for _ in ANGLES]
    correct = sum(label == truth for label, truth in zip(labels, expected, strict=True))
    print(f"{len(files)} photographs at {len(ANGLES)} angles: {correct} of {len(labels)} predictions are right")


def save_rotated(photograph: Path, angle: int, folder: Path) -> Path:
    """Save a photograph, rotated counter-clockwise, and return the path of the new file."""
    image = Image.open(photograph).convert("RGBA")
    side = int(SIDE * FILLED)
    image = ImageOps.contain(image.crop(image.getchannel("A").getbbox()), (side, side))
    square = Image.new("RGBA", (SIDE, SIDE), WHITE)
    square.alpha_composite(image, ((SIDE - image.width) // 2, (SIDE - image.height) // 2))
    path = folder / f"{photograph.parent.name}-{photograph.stem}-{angle}.png"
    square.convert("RGB").rotate(angle, Image.Resampling.BICUBIC, fillcolor=WHITE[:3]).save(path)
    return path


def draw(rotated: list[Path], labels: list[str], classes: list[str]) -> Figure:
    """Draw one row per photograph and one column per angle, with the predicted label below each image."""
    figure = Figure(figsize=(1.05 * len(ANGLES), 1.22 * len(classes)), layout="constrained")
    axes = figure.subplots(len(classes), len(ANGLES), squeeze=False).flat
    for index, (cell, path, label) in enumerate(zip(axes, rotated, labels, strict=True)):
        row, column = divmod(index, len(ANGLES))
        correct = label == classes[row]
        colour = CORRECT_COLOUR if correct else ERROR_COLOUR
        cell.imshow(Image.open(path))
        cell.set(xticks=[], yticks=[])
        cell.set_xlabel(label if correct else f"{label} ✗", color=colour, weight="bold", fontsize=9, labelpad=2)
        for spine in cell.spines.values():
            spine.set(color="0.8" if correct else colour, linewidth=0.8 if correct else MARKED_LINE_WIDTH)
        if row == 0:
            cell.set_title(f"{ANGLES[column]}°", color="0.35", fontsize=9)
    return figure


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
