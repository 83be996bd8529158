"""The networks that TIGraNet is compared with, one paper a file."""

from tigranet.baselines.convnet import ConvArchitecture, ConvNet, comparable_convnet
from tigranet.baselines.deepscat import DeepScat, ScatArchitecture

__all__ = ["ConvArchitecture", "ConvNet", "DeepScat", "ScatArchitecture", "comparable_convnet"]
