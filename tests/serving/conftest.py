import logging

import numpy as np
import pytest
import torch
from starlette.testclient import TestClient

from tigranet import TIGraNet
from tigranet.data import LabelledImages
from tigranet.serving.application import create_application
from tigranet.serving.limits import ServerLimits
from tigranet.serving.predictor import Predictor
from tigranet.serving.structured_log import LOGGER, SERVER_LOGGER
from tigranet.workflows.unknown_detection import fit_unknown_detector, write_unknown_detector

SIZE = 12
"""Side length in pixels of the images that the networks of these tests read."""


@pytest.fixture(autouse=True, scope="module")
def _plain_kernels():
    """No test here is about kernels, and the fused ones take seconds to load."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIGRANET_KERNELS", "plain")
        yield


@pytest.fixture(autouse=True)
def _loggers_without_handlers():
    """Other tests in this process may have started a server, which sends its log to a stream."""

    def reset():
        for logger in (logging.getLogger(name) for name in (LOGGER, SERVER_LOGGER)):
            logger.handlers, logger.propagate = [], True
            logger.setLevel(logging.NOTSET)

    reset()
    yield
    reset()


def save_network(folder, in_maps=1, **options):
    """Save a network with random weights, whose answers differ from image to image."""
    TIGraNet(
        "SC[4,3]-DP[40]-S[3]", 3, in_maps, class_names=["a", "b", "ç"], image_size=SIZE, **options
    ).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def grey_model(tmp_path_factory):
    return save_network(tmp_path_factory.mktemp("grey"))


@pytest.fixture(scope="session")
def color_model(tmp_path_factory):
    return save_network(tmp_path_factory.mktemp("color"), in_maps=3, window="disc")


def spots(count, side=SIZE, seed=0):
    """Images of a bright spot, which the detector of ``detecting_model`` knows."""
    centres = np.random.default_rng(seed).uniform(0.35, 0.65, (count, 2, 1, 1)) * side
    y, x = np.arange(side)[:, None] + 0.5, np.arange(side) + 0.5
    squares = (y - centres[:, 0]) ** 2 + (x - centres[:, 1]) ** 2
    return (255 * np.exp(-squares / (0.15 * side) ** 2)).round().astype(np.uint8)


@pytest.fixture(scope="session")
def detecting_model(tmp_path_factory):
    """A network with a detector of unknown images."""
    torch.manual_seed(0)
    folder = save_network(tmp_path_factory.mktemp("detecting") / "model")
    network = TIGraNet.from_pretrained(folder)
    images = LabelledImages(torch.from_numpy(spots(90)[:, None]) / 255, torch.arange(90) % 3)
    train, validation = images.take(list(range(45))), images.take(list(range(45, 90)))
    write_unknown_detector(folder, network, fit_unknown_detector(network, train, validation))
    return folder


@pytest.fixture(scope="session")
def predictors(grey_model, color_model):
    return {"grey": Predictor(grey_model, device="cpu"), "color": Predictor(color_model, device="cpu")}


@pytest.fixture
def client_of(predictors):
    """Start an application in this process, as a function of its options, and return a client."""
    clients = []

    def start(**options):
        limits = ServerLimits(**options.pop("limits", {}))
        client = TestClient(create_application(predictors, limits=limits, **options), base_url="http://localhost")
        clients.append(client)
        return client.__enter__()

    yield start
    for client in clients:
        client.__exit__(None, None, None)


@pytest.fixture
def client(client_of):
    return client_of()


@pytest.fixture
def pixels():
    """Three colour images of one size that is not square."""
    return np.random.default_rng(0).integers(0, 256, (3, 20, 14, 3), dtype=np.uint8)
