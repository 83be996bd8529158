import torch

from tigranet.evaluation.unknown.max_logit import MaxLogit


def test_the_score_is_minus_the_largest_logit(known, validation):
    scores = MaxLogit.fit(known, validation).scores(validation)
    assert torch.equal(scores, -validation.logits.max(1).values)
