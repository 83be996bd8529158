import torch

from tigranet.evaluation.unknown.softmax_probability import SoftmaxProbability


def test_the_score_is_minus_the_logarithm_of_the_highest_probability(known, validation):
    scores = SoftmaxProbability.fit(known, validation).scores(validation)
    torch.testing.assert_close(scores.neg().exp(), validation.logits.softmax(1).amax(1))
