import hashlib

import torch

from tigranet.data.image_hashes import HASHED_TOGETHER, content_hash, picture_hash


def test_the_hash_of_many_images_is_that_of_all_their_bytes():
    """However many are hashed at a time."""
    images = torch.rand(HASHED_TOGETHER + 3, 2, 3, 4)
    expected = hashlib.blake2b(images.numpy().tobytes(), digest_size=8).hexdigest()
    assert content_hash(images) == expected
    assert content_hash(images.flip(0)) != expected


def test_a_view_has_the_hash_of_its_copy():
    image = torch.rand(3, 4, 5).transpose(1, 2)
    assert content_hash(image) == content_hash(image.contiguous())


def test_pictures_that_differ_in_the_last_digit_are_the_same_picture():
    image = torch.tensor([[[0.25, 0.3]]])
    other = image + torch.tensor([[[1e-7, -1e-7]]])
    assert content_hash(image) != content_hash(other)
    assert picture_hash(image) == picture_hash(other)
    assert picture_hash(image) != picture_hash(image + 1 / 255)
