import pytest

from tigranet.stop_request import is_end_requested, raise_if_stop_requested, request_stop, withdraw_stop


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


def test_a_process_that_is_to_end_is_told_from_one_that_is_to_stop_what_it_does():
    try:
        request_stop()
        assert not is_end_requested()
        request_stop(end=True)
        request_stop()
        assert is_end_requested()
    finally:
        withdraw_stop()
    assert not is_end_requested()
