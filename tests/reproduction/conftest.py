import pytest

from shortened_results import shorten_results
from tigranet.data import DataSet, LabelledImages
from tigranet.reproduction import run_experiment


@pytest.fixture(autouse=True)
def _shortened_results(request):
    shorten_results(request)


@pytest.fixture
def small(monkeypatch, mnist_012):
    """Every data set is twenty images of MNIST-012; the value is a list of the names and seeds that were loaded."""
    parts = [
        LabelledImages(part.images[:20], part.labels[:20]) for part in (mnist_012.train, mnist_012.test, mnist_012.test)
    ]
    loaded = []

    def load(name, seed, folder):
        loaded.append((name, seed))
        return DataSet(name, mnist_012.class_names, *parts)

    run_experiment.load_cached.cache_clear()
    monkeypatch.setattr(run_experiment, "load", load)
    yield loaded
    run_experiment.load_cached.cache_clear()
