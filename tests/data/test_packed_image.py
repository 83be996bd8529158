import threading
from pathlib import Path

import pytest

from tigranet.data import packed_image as module
from tigranet.data.decode_budget import ByteBudget
from tigranet.data.image_errors import UnreadableImageError
from tigranet.data.packed_image import PackedImage
from zip_files import image_bytes


def test_the_content_is_read_when_the_image_is_converted():
    reads = []
    content = image_bytes(51)
    image = PackedImage(Path("a.zip/1.png"), len(content), lambda: reads.append(1) or content)
    assert (image.path, image.held_bytes, reads) == (Path("a.zip/1.png"), 0, [])
    assert image.square(8, color=False).mean() == pytest.approx(0.2)
    assert reads == [1]


def test_all_threads_together_hold_a_limited_number_of_bytes(monkeypatch):
    content = image_bytes()
    monkeypatch.setattr(module, "CONTENT_BUDGET", ByteBudget(2 * len(content)))
    lock, active, most = threading.Lock(), 0, 0

    def read():
        nonlocal active, most
        with lock:
            active += 1
            most = max(most, active)
        threading.Event().wait(0.01)
        with lock:
            active -= 1
        return content

    images = [PackedImage(Path(str(number)), len(content), read) for number in range(8)]
    threads = [threading.Thread(target=image.square, args=(8, False)) for image in images]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1 <= most <= 2


def test_a_file_that_is_too_large_is_not_read():
    image = PackedImage(Path("x"), module.MAX_CONTENT_BYTES + 1, lambda: pytest.fail("it was read"))
    with pytest.raises(UnreadableImageError, match="268,435,457"):
        image.square(8, color=False)
