import pytest

from tigranet.serving.limits import ServerLimits


@pytest.mark.parametrize("limit", ["body_bytes", "pixels", "images", "concurrent_requests"])
def test_a_limit_must_be_positive(limit):
    for value in (0, -1):
        with pytest.raises(ValueError, match=rf"{limit}.*{value}"):
            ServerLimits(**{limit: value})


def test_a_time_must_be_positive():
    for value in (0.0, float("nan")):
        with pytest.raises(ValueError, match="request_seconds"):
            ServerLimits(request_seconds=value)
