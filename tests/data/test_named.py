import pytest
import torch

from tigranet.data import load


def test_mnist_012_is_500_100_100_of_three_digits(mnist_012):
    parts = (mnist_012.train, mnist_012.validation, mnist_012.test)
    assert [len(part.labels) for part in parts] == [500, 100, 100]
    assert all(part.images.shape[1:] == (1, 28, 28) for part in parts)
    assert all(set(part.labels.tolist()) == {0, 1, 2} for part in parts)
    assert mnist_012.class_names == ("0", "1", "2")


def test_no_image_is_in_two_parts(mnist_012):
    images = torch.cat([mnist_012.train.images, mnist_012.validation.images, mnist_012.test.images])
    assert len(torch.unique(images.flatten(1), dim=0)) == 700


def test_it_is_a_pure_function_of_the_seed(mnist_012):
    again, other = load("mnist-012", seed=0), load("mnist-012", seed=1)
    assert torch.equal(again.train.images, mnist_012.train.images)
    assert not torch.equal(other.train.images, mnist_012.train.images)


@pytest.mark.parametrize(
    ("name", "message"), [("mnist012", "did you mean 'mnist-012'"), ("cats", "there are: mnist-012")]
)
def test_an_unknown_name_is_answered_with_the_known_ones(name, message):
    with pytest.raises(ValueError, match=message):
        load(name)
