"""Images and labels: named data sets, and what can be done to an image."""

from tigranet.data.framed import Broken, read_framed
from tigranet.data.labelled import DataSet, Labelled
from tigranet.data.listing import image_files
from tigranet.data.named import NAMED, data_folder, load
from tigranet.data.own import is_own, load_own
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
    "is_own",
    "jitter",
    "load",
    "load_own",
    "read_framed",
    "rotate",
    "shift",
]
