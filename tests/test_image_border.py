import pytest
import torch

from tigranet.image_border import border_of


@pytest.mark.parametrize(
    "shape", [(1, 1), (1, 2), (2, 1), (1, 6), (6, 1), (2, 2), (2, 5), (5, 2), (3, 3), (3, 8), (7, 4)]
)
def test_every_pixel_with_a_neighbour_outside_the_image_is_there_once(shape):
    height, width = shape
    numbers = torch.arange(height * width).reshape(shape)
    expected = [
        int(numbers[row, column])
        for row in range(height)
        for column in range(width)
        if row in (0, height - 1) or column in (0, width - 1)
    ]
    images = torch.stack([numbers, numbers + 1000]).double()[None].expand(3, 2, *shape)
    for image in border_of(images):
        assert sorted(image[0].tolist()) == expected
        assert torch.equal(image[1], image[0] + 1000)
