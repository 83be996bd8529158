"""The networks that TIGraNet is compared with, one published method per file."""

from tigranet.baselines.convnet import ConvArchitecture, ConvNet, comparable_convnet
from tigranet.baselines.deepscat import DeepScat, ScatArchitecture
from tigranet.baselines.gmr_resnet import GMRArchitecture, GMRResNet
from tigranet.baselines.group_cnn import GroupArchitecture, GroupCNN
from tigranet.baselines.harmnet import HarmArchitecture, HarmNet
from tigranet.baselines.resnet import ResidualArchitecture, ResNet
from tigranet.baselines.stn import STN, STArchitecture

__all__ = [
    "STN",
    "ConvArchitecture",
    "ConvNet",
    "DeepScat",
    "GMRArchitecture",
    "GMRResNet",
    "GroupArchitecture",
    "GroupCNN",
    "HarmArchitecture",
    "HarmNet",
    "ResNet",
    "ResidualArchitecture",
    "STArchitecture",
    "ScatArchitecture",
    "comparable_convnet",
]
