import torch

from tigranet.evaluation.unknown.log_moments import LogMoments


def test_training_images_are_standardised_and_constants_vanish():
    statistics = torch.rand(50, 6).double()
    statistics[:, 2] = 0.3
    statistics[:, 3] = 0
    moments = LogMoments.fit(statistics)
    numbers = moments(statistics)
    constant = torch.tensor([False, True, False, False, True, False])  # first all means, then all variances
    torch.testing.assert_close(numbers.mean(0), torch.zeros(6).double())
    torch.testing.assert_close(numbers[:, ~constant].std(0, correction=0), torch.ones(4).double())
    assert (moments(10 * statistics)[:, constant] == 0).all()


def test_no_variance_is_far_from_every_image_that_has_one():
    statistics = torch.stack([torch.zeros(40), torch.linspace(0.5, 1.5, 40)], dim=1)
    blank = LogMoments.fit(statistics)(torch.zeros(1, 2))[0, 1]
    assert blank < -10
    assert (0 - statistics[:, 1].mean()) / statistics[:, 1].std() > -4  # on the scale of the variances themselves
