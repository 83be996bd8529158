import numpy as np
import pytest
import torch
from PIL import Image

from images import save
from tigranet.data import load_user_data
from tigranet.data.evenly_spaced import evenly_spaced
from tigranet.data.image_colors import (
    MAX_EXAMINED_IMAGES,
    MIN_DIFFERENCE,
    files_have_colors,
    have_colors,
)
from tigranet.data.user_data import read_user_images

GREY, TINTED = torch.rand(1, 6, 6), torch.rand(3, 6, 6)


def fill(folder, images):
    """Save images as the classes a and b in turn, with more digits than a file system sorts by number."""
    for number, image in enumerate(images):
        save(folder / "ab"[number % 2] / f"{number:03d}.png", image)
    return folder


def colored(count, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (count, 8, 8, 3), np.uint8)


def grey(count):
    return colored(count)[..., :1].repeat(3, -1)


def test_equal_channels_are_no_colors_nor_are_nearly_equal_ones():
    assert have_colors([TINTED])
    assert not have_colors([GREY, GREY.expand(3, 6, 6)])
    nearly = GREY.expand(3, 6, 6) + torch.tensor([0, 0.9 * MIN_DIFFERENCE, 0])[:, None, None]
    assert not have_colors([nearly])
    assert have_colors([nearly + torch.tensor([0, 0.2 * MIN_DIFFERENCE, 0])[:, None, None]])


def test_a_few_images_with_colors_among_grey_ones_do_not_count():
    assert not have_colors([TINTED] + 9 * [GREY])
    assert have_colors([TINTED] + 8 * [GREY])
    assert not have_colors([])


@pytest.mark.parametrize("channels", [2, 4, 5])
def test_images_with_other_numbers_of_channels_become_grey(channels):
    assert not have_colors([TINTED, torch.rand(channels, 6, 6)])


def test_grey_photographs_in_three_channels_stay_grey_in_a_lossy_format(tmp_path):
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (32, 32), np.uint8)).convert("RGB")
    image.save(tmp_path / "grey.jpg", quality=50)
    image.putpixel((0, 0), (255, 0, 0))
    image.save(tmp_path / "one red pixel.png")
    assert not files_have_colors([tmp_path / "grey.jpg", tmp_path / "one red pixel.png"])


def test_files_that_cannot_be_read_do_not_count(tmp_path):
    (tmp_path / "broken.png").touch()
    save(tmp_path / "tinted.png", colored(1)[0])
    assert files_have_colors([*10 * [tmp_path / "broken.png"], tmp_path / "tinted.png"])
    assert not files_have_colors([tmp_path / "broken.png"])


@pytest.mark.parametrize(("images", "channels"), [(colored(8), 3), (grey(8), 1), (grey(8)[..., 0], 1)])
@pytest.mark.parametrize("kind", ["folder", "npz"])
def test_the_colors_of_a_users_images_are_kept_if_there_are_any(tmp_path, images, channels, kind):
    path = tmp_path / "images.npz"
    if kind == "npz":
        np.savez(path, images=images, labels=np.arange(8) % 2)
    else:
        path = fill(tmp_path / "images", images)
    assert read_user_images(path, color=None).images.images.shape[1] == channels
    assert read_user_images(path, color=False).images.images.shape[1] == 1
    expected = 3 if images.ndim == 4 else 1
    assert read_user_images(path, color=True).images.images.shape[1] == expected


def test_a_file_that_was_not_examined_and_has_other_channels_makes_all_grey(tmp_path):
    fill(tmp_path, colored(2 * MAX_EXAMINED_IMAGES))
    skipped = set(range(2 * MAX_EXAMINED_IMAGES)) - set(evenly_spaced(2 * MAX_EXAMINED_IMAGES, MAX_EXAMINED_IMAGES))
    files = sorted(tmp_path.rglob("*.png"))
    odd = files[min(skipped)]
    Image.fromarray(colored(1)[0]).save(odd.with_suffix(".tiff"))
    odd.unlink()
    from tifffile import imwrite

    imwrite(odd.with_suffix(".tiff"), np.zeros((5, 8, 8), np.uint8), photometric="minisblack")
    data, unreadable = load_user_data(tmp_path, color=None)
    assert data.train.images.shape[1] == 1
    assert not unreadable
