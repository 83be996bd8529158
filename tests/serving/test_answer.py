import numpy as np
import torch

from tigranet.serving.answer import answer_of

PROBABILITIES = torch.tensor([[0.9, 0.1], [0.4, 0.6]], dtype=torch.float64)


def test_an_image_is_unknown_if_its_novelty_is_high_or_its_probability_low():
    cases = {(None, 0.0): [False, False], ((0.0, 2.0), 0.0): [False, True], ((2.0, 0.0), 0.7): [True, True]}
    for (novelty, reject), expected in cases.items():
        novelties = None if novelty is None else torch.tensor(novelty)
        answer = answer_of(["a", "b"], PROBABILITIES, novelties, reject)
        assert answer.unknown.tolist() == expected
        names = zip(["a", "b"], expected, strict=True)
        assert answer.label == ["unknown" if is_unknown else name for name, is_unknown in names]
        np.testing.assert_array_equal(answer.probability, np.array([0.9, 0.6], np.float32))


def test_the_limit_is_that_of_the_rounded_novelty_and_nan_is_unknown():
    novelty = torch.tensor([1 + 4e-7, torch.nan], dtype=torch.float64)  # 'tigranet predict' rounds to 6 decimals
    assert answer_of(["a", "b"], PROBABILITIES, novelty).unknown.tolist() == [False, True]


def test_a_class_may_be_called_unknown():
    answer = answer_of(["unknown", "b"], PROBABILITIES)
    assert answer.label == ["unknown", "b"]
    assert not answer.unknown.any()
