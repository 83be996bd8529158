import torch

from tigranet.evaluation.unknown.energy import Energy


def test_the_score_is_the_free_energy(known, validation):
    scores = Energy.fit(known, validation).scores(validation)
    torch.testing.assert_close(scores, -validation.logits.exp().sum(1).log())
