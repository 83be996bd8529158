from dataclasses import FrozenInstanceError

import pytest

from tigranet.workflows.train import train


def test_what_was_not_asked_for_is_none(small):
    trained = train(small, architecture="SC[2,2]-S[2]", recipe={"epochs": 1})
    assert trained.folder is trained.picture is trained.first is trained.comparison is None
    assert trained.cross_validation is trained.larger is trained.paper is None
    assert trained.unreadable_files == ()
    assert (trained.data, trained.record["data"]) == (small, "small")
    with pytest.raises(FrozenInstanceError):
        trained.folder = "model/"
