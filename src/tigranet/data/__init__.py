"""Images and labels: named data sets, and what can be done to an image."""

from tigranet.data.labelled import DataSet, Labelled
from tigranet.data.named import NAMED, data_folder, load
from tigranet.data.transforms import ROTATED, Isometry, jitter, rotate, shift

__all__ = ["NAMED", "ROTATED", "DataSet", "Isometry", "Labelled", "data_folder", "jitter", "load", "rotate", "shift"]
