import torch

from tigranet.evaluation.unknown.virtual_logit import VirtualLogit


def test_the_virtual_logit_of_training_images_has_the_mean_of_their_largest_logits(known, validation):
    detector = VirtualLogit.fit(known, validation)
    virtual = detector.scores(known.images) + known.images.logits.logsumexp(1)
    torch.testing.assert_close(virtual.mean(), known.images.logits.amax(1).mean())
    torch.testing.assert_close(known.weight @ detector.origin, -known.bias)
