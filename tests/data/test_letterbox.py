import numpy as np
import pytest

from images import fill
from tigranet.data.folder_index import image_files
from tigranet.data.letterbox import UnreadableFile, letterbox, read_letterboxed, usual_size


def test_framing_keeps_the_shape_and_fills_with_the_border():
    image = np.full((20, 10, 1), 0.25, np.float32)
    image[5:15, 3:7] = 1
    square = letterbox(image, 40)
    assert square.shape == (40, 40, 1)
    assert (square[:, :10] == 0.25).all()
    assert (square[:, 30:] == 0.25).all()
    bright = np.argwhere(square[..., 0] > 0.6)
    assert np.ptp(bright, axis=0).tolist() == [19, 7]  # twice as large, no wider for it
    turned = letterbox(np.rot90(image).copy(), 40)
    np.testing.assert_allclose(turned, np.rot90(square), atol=1e-6)


def test_files_are_read_a_few_at_a_time_and_in_order(tmp_path):
    fill(tmp_path, {"a": 30})
    asked = []

    def paths():
        for path in image_files(tmp_path):
            asked.append(path)
            yield path

    results = read_letterboxed(paths(), 12, color=False, window=4)
    first = next(results)
    assert len(asked) == 4
    names = [first[0].name, *(path.name for path, _ in results)]
    assert names == [f"{number:03d}.png" for number in range(30)]


def test_a_broken_file_is_answered_with_the_reason(tmp_path):
    fill(tmp_path, {"a": 2})
    (tmp_path / "a" / "000.png").write_bytes(b"")
    (first, broken), (_, image) = read_letterboxed(image_files(tmp_path), 8, False)
    assert broken == UnreadableFile(first, "the file is empty")
    assert image.shape == (1, 8, 8)


@pytest.mark.parametrize(("shape", "wanted"), [((12, 12), 12), ((200, 100), 64), ((20, 30), 30)])
def test_the_usual_size_is_the_median_longer_side_at_most_64(tmp_path, shape, wanted):
    fill(tmp_path, {"a": 3, "b": 3}, size=shape)
    (tmp_path / "a" / "broken.png").write_bytes(b"no image")
    assert usual_size(list(image_files(tmp_path))) == wanted
