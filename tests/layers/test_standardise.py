import torch
from torch.autograd import gradcheck

from tigranet.layers import Standardise


def test_in_training_mode_the_result_has_mean_0_and_variance_1_at_any_scale():
    phi = torch.rand(50, 3, dtype=torch.float64) * torch.tensor([1e-3, 1.0, 1e4]) + 5
    result = Standardise(3).double()(phi)
    torch.testing.assert_close(result.mean(0), torch.zeros(3, dtype=torch.float64), rtol=0, atol=1e-9)
    torch.testing.assert_close(result.var(0, correction=0), torch.ones(3, dtype=torch.float64), rtol=0, atol=2e-3)


def test_in_training_mode_it_equals_batch_normalisation():
    phi = torch.rand(50, 3, dtype=torch.float64)
    expected = torch.nn.functional.batch_norm(phi, None, None, training=True, eps=1e-10)
    torch.testing.assert_close(Standardise(3).double()(phi), expected)


def test_the_estimates_are_the_average_of_the_first_batches_and_forget_later():
    layer = Standardise(2, momentum=0.25).double()
    batches = torch.rand(4, 10, 2, dtype=torch.float64)
    for batch in batches:
        layer(batch)
    torch.testing.assert_close(layer.mean, batches.mean((0, 1)))
    torch.testing.assert_close(layer.variance, batches.var(1, correction=0).mean(0))
    before = layer.mean.clone()
    layer(batches[0])
    torch.testing.assert_close(layer.mean, 0.75 * before + 0.25 * batches[0].mean(0))


def test_in_evaluation_mode_images_do_not_affect_each_other():
    layer, phi = Standardise(3), torch.rand(20, 3)
    in_training = layer(phi)
    layer.eval()
    torch.testing.assert_close(layer(phi), in_training)
    torch.testing.assert_close(layer(phi[:1]), in_training[:1])
    assert layer.batches == 1


def test_a_batch_of_one_uses_the_running_moments_in_training_mode():
    layer, phi = Standardise(3), torch.rand(1, 3)
    torch.testing.assert_close(layer.train()(phi), layer.eval()(phi))


def test_there_are_no_parameters_and_gradients_pass_through():
    layer = Standardise(3).double()
    assert not list(layer.parameters())
    assert gradcheck(layer, torch.rand(5, 3, dtype=torch.float64, requires_grad=True))


def test_a_constant_statistic_gives_zero():
    assert (Standardise(2)(torch.ones(4, 2)) == 0).all()
    assert repr(Standardise(2)) == "Standardise(2)"


def test_a_map_has_one_mean_and_variance_over_the_batch_and_its_nodes():
    z = torch.randn(6, 3, 20, dtype=torch.float64) * torch.tensor([1.0, 5.0, 0.1])[:, None] + 2
    layer = Standardise(3, eps=1e-5).double()
    torch.testing.assert_close(layer(z), torch.nn.functional.batch_norm(z, None, None, training=True, eps=1e-5))
    torch.testing.assert_close(layer.eval()(z[:1]), layer.train()(z)[:1])


def test_one_image_has_enough_nodes_for_its_own_moments():
    z = torch.randn(1, 2, 50)
    result = Standardise(2, eps=1e-5)(z)
    torch.testing.assert_close(result.mean((0, 2)), torch.zeros(2), rtol=0, atol=1e-6)


def test_an_empty_batch_gives_an_empty_result_and_no_update():
    layer = Standardise(2)
    assert layer(torch.rand(0, 2)).shape == (0, 2)
    assert layer(torch.rand(0, 2, 9)).shape == (0, 2, 9)
    assert layer.batches == 0


def test_half_precision_is_standardised_and_updates_the_estimates():
    layer, z = Standardise(2, eps=1e-5).half(), torch.rand(6, 2, 9).half()
    expected = torch.nn.functional.batch_norm(z.float(), None, None, training=True, eps=1e-5)
    torch.testing.assert_close(layer(z).float(), expected, rtol=0, atol=5e-3)
    torch.testing.assert_close(layer.mean.float(), z.float().mean((0, 2)), rtol=0, atol=5e-3)
