"""The networks that TIGraNet is compared with, one paper a file."""

from tigranet.baselines.convnet import ConvArchitecture, ConvNet, comparable_convnet
from tigranet.baselines.group_cnn import GroupArchitecture, GroupCNN
from tigranet.baselines.harmnet import HarmArchitecture, HarmNet
from tigranet.baselines.stn import STN, STArchitecture

__all__ = [
    "STN",
    "ConvArchitecture",
    "ConvNet",
    "GroupArchitecture",
    "GroupCNN",
    "HarmArchitecture",
    "HarmNet",
    "STArchitecture",
    "comparable_convnet",
]
