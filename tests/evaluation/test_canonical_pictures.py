import torch

from tigranet.evaluation.canonical_pictures import LEVELS, canonical_pictures, picture_digests


def test_quarter_turns_are_the_same_picture_also_with_small_rounding_errors():
    image = torch.randint(0, 256, (1, 3, 7, 7)) / 255
    turned = torch.cat([image.rot90(turns, (2, 3)) * (1 - turns * 6e-8) for turns in range(4)])
    pictures = canonical_pictures(turned)
    assert len(set(picture_digests(pictures))) == 1
    assert (pictures == pictures[:1]).all()
    assert (canonical_pictures(image).sum() - image.sum()).abs() < image.numel() / LEVELS


def test_mirror_images_and_other_pixels_are_other_pictures():
    image = torch.rand(1, 1, 6, 6)
    changed = image.clone()
    changed[0, 0, 3, 3] += 1 / 255
    digests = picture_digests(canonical_pictures(torch.cat([image, image.flip(3), changed])))
    assert len(set(digests)) == 3
    assert all(0 <= digest < 2**64 for digest in digests)
