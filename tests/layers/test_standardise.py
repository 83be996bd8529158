import torch
from torch.autograd import gradcheck

from tigranet.layers import Standardise


def test_in_training_it_has_mean_0_and_variance_1_whatever_the_scale():
    phi = torch.rand(50, 3, dtype=torch.float64) * torch.tensor([1e-3, 1.0, 1e4]) + 5
    answer = Standardise(3).double()(phi)
    torch.testing.assert_close(answer.mean(0), torch.zeros(3, dtype=torch.float64), rtol=0, atol=1e-9)
    torch.testing.assert_close(answer.var(0, correction=0), torch.ones(3, dtype=torch.float64), rtol=0, atol=2e-3)


def test_it_is_batch_normalisation():
    phi = torch.rand(50, 3, dtype=torch.float64)
    wanted = torch.nn.functional.batch_norm(phi, None, None, training=True, eps=1e-10)
    torch.testing.assert_close(Standardise(3).double()(phi), wanted)


def test_the_estimates_are_the_average_of_the_first_batches_and_then_forget():
    layer = Standardise(2, momentum=0.25).double()
    batches = torch.rand(4, 10, 2, dtype=torch.float64)
    for batch in batches:
        layer(batch)
    torch.testing.assert_close(layer.mean, batches.mean((0, 1)))
    torch.testing.assert_close(layer.variance, batches.var(1, correction=0).mean(0))
    before = layer.mean.clone()
    layer(batches[0])
    torch.testing.assert_close(layer.mean, 0.75 * before + 0.25 * batches[0].mean(0))


def test_in_evaluation_each_image_is_alone():
    layer, phi = Standardise(3), torch.rand(20, 3)
    trained = layer(phi)
    layer.eval()
    torch.testing.assert_close(layer(phi), trained)
    torch.testing.assert_close(layer(phi[:1]), trained[:1])
    assert layer.batches == 1


def test_a_batch_of_one_trains_with_the_running_moments():
    layer, phi = Standardise(3), torch.rand(1, 3)
    torch.testing.assert_close(layer.train()(phi), layer.eval()(phi))


def test_it_learns_nothing_by_gradient_and_lets_gradients_through():
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


def test_one_image_has_nodes_enough_to_train_on():
    z = torch.randn(1, 2, 50)
    answer = Standardise(2, eps=1e-5)(z)
    torch.testing.assert_close(answer.mean((0, 2)), torch.zeros(2), rtol=0, atol=1e-6)


def test_no_images_give_no_answer_and_teach_nothing():
    layer = Standardise(2)
    assert layer(torch.rand(0, 2)).shape == (0, 2)
    assert layer(torch.rand(0, 2, 9)).shape == (0, 2, 9)
    assert layer.batches == 0
