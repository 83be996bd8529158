import pytest

from tigranet.training.duration import describe_duration


@pytest.mark.parametrize(("seconds", "text"), [(0.1, "about 1 s"), (89.0, "about 89 s"), (91.0, "about 2 min")])
def test_durations_have_one_unit(seconds, text):
    assert describe_duration(seconds) == text
