from pathlib import Path

import pytest

from images import fill
from tigranet.data.folder_index import index_folder
from tigranet.data.shards.shard_plan import make_plan, shard_images


@pytest.fixture
def photos(tmp_path):
    return fill(tmp_path / "photos", {"a": 6, "b": 5}, size=(4, 4))


def plan_of(photos, **options):
    settings = {"size": 4, "color": False, "group": None, "images_per_shard": 4} | options
    return make_plan(photos, index_folder(photos), **settings)


def test_every_image_is_in_one_shard_and_the_order_is_always_the_same(photos):
    plan, index = plan_of(photos), index_folder(photos)
    first, second = ([*shard_images(plan, photos, index)] for _ in range(2))
    assert first == second
    assert [number for number, _ in first] == [0, 1, 2]
    assert [len(images) for _, images in first] == [4, 4, 3]
    images = sorted(image for _, part in first for image in part)
    assert [image.path for image in images] == list(index.paths)
    assert [image.label for image in images] == list(index.labels)
    assert images[0].name == str(Path("a", "000.png"))


def test_the_checksum_is_that_of_what_determines_the_shards(photos):
    plan = plan_of(photos)
    assert plan_of(photos).checksum == plan.checksum
    assert len({plan.checksum, plan_of(photos, size=5).checksum, plan_of(photos, images_per_shard=5).checksum}) == 3
    (photos / "a" / "000.png").write_bytes(b"other")
    assert plan_of(photos).checksum != plan.checksum


def test_a_stored_plan_is_compared(photos, tmp_path):
    plan = plan_of(photos)
    plan.write(tmp_path)
    plan.check_stored(tmp_path)
    with pytest.raises(ValueError, match="another size: 4, and not 5"):
        plan_of(photos, size=5).check_stored(tmp_path)
    (photos / "b" / "new.png").write_bytes(b"new")
    with pytest.raises(ValueError, match="have changed"):
        plan_of(photos).check_stored(tmp_path)


def test_sizes_are_positive(photos):
    with pytest.raises(ValueError, match="size must be at least 1, got 0"):
        plan_of(photos, size=0)
