import pytest
from numpy.testing import assert_array_equal

from bulk_sources import contents
from tigranet.data.image_content import ImageContent
from tigranet.data.image_errors import UnreadableImageError
from tigranet.data.letterbox import read_square


def test_content_in_memory_is_read_as_a_file(tmp_path):
    (content,) = contents(1).values()
    (tmp_path / "a.png").write_bytes(content)
    image = ImageContent("s3://bucket/a.png", content)
    assert image.held_bytes == len(content)
    assert_array_equal(image.square(8, color=False), read_square(tmp_path / "a.png", 8, color=False))


@pytest.mark.parametrize(("content", "reason"), [(b"", "empty"), (b"text", "not an image")])
def test_what_is_no_image_has_a_reason(content, reason):
    with pytest.raises(UnreadableImageError, match=reason):
        ImageContent("a.png", content).square(8, color=False)
