from PIL import Image

from tigranet.figures.gallery import save_gallery


def test_every_picture_is_written_twice(tmp_path, trained, mnist_012):
    written = save_gallery(tmp_path / "new", trained, mnist_012)
    assert sorted(path.name for path in written) == [
        "filters.png", "filters.svg", "pooling.png", "pooling.svg",
        "test-images.png", "test-images.svg", "turned.png", "turned.svg",
    ]  # fmt: skip
    for path in written:
        if path.suffix == ".png":
            with Image.open(path) as picture:
                assert picture.size[0] >= 1000
