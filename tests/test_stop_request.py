import pytest

from tigranet.stop_request import raise_if_stop_requested, request_stop, withdraw_stop


def test_a_request_is_remembered_until_it_is_withdrawn():
    raise_if_stop_requested()
    request_stop()
    try:
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                raise_if_stop_requested()
    finally:
        withdraw_stop()
    raise_if_stop_requested()
