"""The networks that TIGraNet is compared with, one paper a file."""

from tigranet.baselines.convnet import ConvArchitecture, ConvNet, comparable_convnet

__all__ = ["ConvArchitecture", "ConvNet", "comparable_convnet"]
