from dataclasses import replace

import torch

from tigranet.workflows.data_notices import data_notices


def test_there_is_nothing_to_say_about_ordinary_data(small):
    assert data_notices(small) == []
    assert data_notices(replace(small, validation=small.validation.take([]))) == []


def test_missing_test_images_are_said(small):
    (notice,) = data_notices(replace(small, test=small.test.take([])))
    assert "small has no test images" in notice
    others = small.test.take(torch.nonzero(small.test.labels != 1).flatten())
    (notice,) = data_notices(replace(small, test=others))
    assert "small has no test images of 1 class: '1'" in notice


def test_class_names_that_differ_by_case_are_named(small):
    (notice,) = data_notices(replace(small, class_names=("a", "B", "A")))
    assert "'a', 'A'" in notice
    assert "'B'" not in notice
