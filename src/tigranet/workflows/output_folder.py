"""Checks that a workflow makes before the work that fills its output folder."""

import os
from importlib.util import find_spec
from pathlib import Path

from tigranet.data import DataSet
from tigranet.data.find_images import image_files
from tigranet.model_folder import is_model_folder, is_saved_model
from tigranet.workflows.load_data import is_named_data_set


def check_output_folder(folder: Path, content: str) -> None:
    """Check that ``folder`` can be created and written to.

    Args:
        folder: The output folder; it need not exist.
        content: What will be saved there, for the error message, such as "model".

    Raises:
        NotADirectoryError: If ``folder`` is a file.
        PermissionError: If ``folder`` cannot be created or written to.
    """
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"a {content} is saved to a folder, got the file '{folder}'")
    parent = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise PermissionError(f"'{folder}' cannot be written: '{parent}' is not a folder that you may write to")


def check_no_saved_model(folder: Path) -> None:
    """Check that a training does not replace a model that is already saved.

    Args:
        folder: The output folder; it need not exist.

    Raises:
        FileExistsError: If ``folder`` holds a saved model, or the checkpoints of a training that was interrupted.
    """
    if is_saved_model(folder):
        raise FileExistsError(
            f"'{folder}' holds a saved model, which the training would replace: give another folder, or allow it with "
            "--overwrite (in Python, overwrite=True)"
        )
    if is_model_folder(folder):
        raise FileExistsError(
            f"'{folder}' holds the checkpoints of a training that has not finished: continue it with --resume, start "
            "again with --overwrite (in Python, resume=True or overwrite=True), or give another folder"
        )


def check_apart_from_data(folder: Path, data: str | Path | DataSet, content: str) -> None:
    """Check that an output folder does not mix with a folder of images, where its files would be read as images.

    A folder of images ignores the folders of models inside it, so a model may be saved to a folder of its own there,
    and anything may be written to the folder of a model.

    Args:
        folder: The output folder; it need not exist.
        data: The data as a workflow received it. Only the path of a folder is compared.
        content: What will be saved, for the error message: "model" or something else.

    Raises:
        ValueError: If ``folder`` is the folder of images, one of its classes, or, for anything but a model, a folder
            inside it that is not the folder of a model.
    """
    if isinstance(data, DataSet) or is_named_data_set(data) or not Path(data).is_dir():
        return
    output, images = Path(os.path.realpath(folder)), Path(os.path.realpath(data))
    if output == images or (folder.exists() and folder.samefile(data)):
        raise ValueError(f"'{folder}' is the folder of the images: give another folder for the {content}")
    if images not in output.parents or is_model_folder(folder):
        return
    if content != "model" or (folder.is_dir() and next(image_files(folder), None) is not None):
        raise ValueError(
            f"'{folder}' is inside the folder of the images '{data}', and would be read as a class: "
            f"give another folder for the {content}"
        )


def has_matplotlib() -> bool:
    """Return whether matplotlib, which draws all figures, is installed."""
    return find_spec("matplotlib") is not None


def require_matplotlib() -> None:
    """Check that matplotlib is installed.

    Raises:
        ImportError: If it is not.
    """
    if not has_matplotlib():
        raise ImportError("figures need matplotlib, which is not installed: pip install 'tigranet[figures]'")
