from tigranet import TIGraNet
from tigranet.data.leakage import hash_images
from tigranet.workflows.known_images import training_hashes
from tigranet.workflows.saved_run import SavedRun

NETWORK = TIGraNet("SC[2,2]-S[2]", 3)


def test_recorded_hashes_come_first():
    run = SavedRun(training_hashes=frozenset({"0123456789abcdef"}), data="mnist-012")
    assert training_hashes("model/", NETWORK, run) == {"0123456789abcdef"}


def test_the_training_images_of_a_named_data_set_are_drawn_again(mnist_012):
    expected = set(hash_images(mnist_012.train.images))
    assert training_hashes("model/", NETWORK, SavedRun(data="mnist-012")) == expected
    assert training_hashes("paper-mnist-012", NETWORK, SavedRun()) == expected


def test_images_that_cannot_be_known_are_not_guessed(tmp_path):
    assert training_hashes("model/", NETWORK, SavedRun()) is None
    assert training_hashes("model/", NETWORK, SavedRun(data="neu-steel"), tmp_path) is None
