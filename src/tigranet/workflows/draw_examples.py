"""Draw the picture of a finished training, which never makes the training fail."""

import os
from contextlib import suppress
from pathlib import Path

from rich.console import Console

from tigranet.abandoned_files import STAGING_PREFIX
from tigranet.data import DataSet
from tigranet.model import TIGraNet
from tigranet.workflows.output_folder import has_matplotlib


def draw_rotated_examples(path: Path, network: TIGraNet, data: DataSet, console: Console | None = None) -> Path | None:
    """Draw rotated images with the predictions of a network, if that is possible.

    Test images are drawn, or validation images if there are no test images. Nothing that goes wrong is an error,
    because the model is already saved: a notice is printed instead. An older picture at ``path`` does not stay.

    Args:
        path: Path of the picture.
        network: The trained network.
        data: The data set.
        console: Where to print a notice.

    Returns:
        ``path``, or None if there is no picture.
    """
    staged = path.with_name(f"{STAGING_PREFIX}{os.getpid()}{path.suffix}")
    try:
        reason = _draw(staged, network, data)
        if reason is None:
            os.replace(staged, path)
            return path
    except Exception as error:
        reason = f"drawing failed with {type(error).__name__}: {error}"
    finally:
        with suppress(OSError):
            staged.unlink(missing_ok=True)
    with suppress(OSError):
        path.unlink(missing_ok=True)
    if console:
        console.print(f"no picture, because {reason}", markup=False, soft_wrap=True)
    return None


def _draw(path: Path, network: TIGraNet, data: DataSet) -> str | None:
    """Draw the picture, or return the reason why there is none."""
    if not has_matplotlib():
        return "matplotlib is not installed: pip install 'tigranet[figures]'"
    part, images = ("test", data.test) if len(data.test.labels) else ("validation", data.validation)
    if not len(images.labels):
        return "there are no test images"
    from tigranet.figures.rotated_examples import save_rotated

    save_rotated(path, network, images, data.class_names, data.test_motion.padding, part, data.orientation)
    return None
