"""Images and labels: named data sets, and what can be done to an image."""

from tigranet.data.named import NAMED, DataSet, Labelled, load
from tigranet.data.transforms import jitter, random_angles, rotate

__all__ = ["NAMED", "DataSet", "Labelled", "jitter", "load", "random_angles", "rotate"]
