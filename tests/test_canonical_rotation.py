import pytest
import torch

from tigranet.canonical_rotation import canonical_rotation, rotate_back


def brute_force(image):
    """The smallest of the four rotations as nested lists, of those whose height is at most their width."""
    rotations = [torch.rot90(image, turn, (1, 2)) for turn in range(4)]
    return min(rotation.flatten().tolist() for rotation in rotations if rotation.shape[1] <= rotation.shape[2])


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 2, 2), (2, 5, 5), (3, 3, 4), (1, 7, 2)])
def test_it_is_the_smallest_rotation_and_the_same_for_all_quarter_turns(shape):
    images = torch.randint(0, 3, (20, *shape)).float()  # with many equal pixels
    canonical = canonical_rotation(images).images
    assert [image.flatten().tolist() for image in canonical] == [brute_force(image) for image in images]
    for turn in range(1, 4):
        assert torch.equal(canonical_rotation(torch.rot90(images, turn, (2, 3))).images, canonical)


@pytest.mark.parametrize("shape", [(1, 6, 6), (3, 4, 5), (1, 5, 4)])
def test_rotating_back_gives_the_images(shape):
    images = torch.rand(10, *shape, dtype=torch.float64)
    canonical, quarter_turns = canonical_rotation(images)
    assert canonical.dtype == torch.float64
    assert torch.equal(torch.stack(rotate_back(canonical, quarter_turns)), images)


def test_symmetric_images_and_empty_batches_stay_as_they_are():
    images = torch.ones(3, 2, 4, 4)
    assert canonical_rotation(images).quarter_turns.tolist() == [0, 0, 0]
    assert canonical_rotation(images[:0]).images.shape == (0, 2, 4, 4)
