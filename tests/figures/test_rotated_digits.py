from PIL import Image

from tigranet.figures.rotated_digits import save_rotated


def test_a_picture_is_drawn(trained, mnist_012, tmp_path):
    save_rotated(tmp_path / "rotated.png", trained, mnist_012.test, mnist_012.class_names)
    with Image.open(tmp_path / "rotated.png") as picture:
        assert min(picture.size) > 500
        assert len(picture.convert("L").getcolors()) > 50
