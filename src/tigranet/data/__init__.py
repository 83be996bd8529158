"""Images and labels: named data sets, and what can be done to an image."""

from tigranet.data.image_folder import Broken, image_files, load_folder, read_framed
from tigranet.data.labelled import DataSet, Labelled
from tigranet.data.named import NAMED, data_folder, load
from tigranet.data.transforms import ROTATED, Isometry, jitter, rotate, shift

__all__ = [
    "NAMED",
    "ROTATED",
    "Broken",
    "DataSet",
    "Isometry",
    "Labelled",
    "data_folder",
    "image_files",
    "jitter",
    "load",
    "load_folder",
    "read_framed",
    "rotate",
    "shift",
]
