"""Images and labels: named data sets, a user's own images, and random transforms."""

from tigranet.data.augment.rigid import ROTATED, Isometry, jitter, rotate, shift
from tigranet.data.dataset import DataSet, LabelledImages
from tigranet.data.find_images import image_files
from tigranet.data.letterbox import UnreadableFile, read_letterboxed
from tigranet.data.sources.registry import REGISTRY, data_folder, load
from tigranet.data.user_data import is_user_data, load_user_data

__all__ = [
    "REGISTRY",
    "ROTATED",
    "DataSet",
    "Isometry",
    "LabelledImages",
    "UnreadableFile",
    "data_folder",
    "image_files",
    "is_user_data",
    "jitter",
    "load",
    "load_user_data",
    "read_letterboxed",
    "rotate",
    "shift",
]
