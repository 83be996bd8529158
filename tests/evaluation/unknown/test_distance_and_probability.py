import torch

from tigranet.evaluation.unknown.distance_and_probability import DistanceAndProbability


def test_confident_logits_do_not_make_up_for_a_large_distance(known, validation, others):
    detector = DistanceAndProbability.fit(known, validation)
    confident = others._replace(logits=1e6 * torch.eye(3)[torch.arange(20) % 3].double())
    assert detector.scores(confident).min() > detector.scores(validation).max()


def test_known_images_have_a_score_of_zero_on_average_and_stored_numbers_give_the_same_scores(known, validation):
    detector = DistanceAndProbability.fit(known, validation)
    assert abs(float(detector.scores(validation).mean())) < 0.1  # except for clipped probabilities
    rounded = detector.rounded()
    torch.testing.assert_close(rounded.scores(validation), detector.scores(validation), rtol=1e-3, atol=1e-3)
    again = DistanceAndProbability.from_tensors(rounded.to_tensors())
    assert torch.equal(again.scores(validation), rounded.scores(validation))
