import torch
from torch import nn

from tigranet.evaluation.training_time import MEASURED_STEPS, WARM_UP_STEPS, cpu_step_seconds


class Recorder(nn.Module):
    """A network that writes down the batches, the mode and the threads, in a list that copies share."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 3)
        self.calls = Calls()

    def forward(self, images):
        self.calls.append((tuple(images.shape), self.training, torch.get_num_threads()))
        return self.layer(images[:, 0, 0])


class Calls(list):
    def __deepcopy__(self, memo):
        return self


def test_steps_of_a_copy_are_measured_in_training_mode_with_the_given_threads():
    module, threads = Recorder().eval(), torch.get_num_threads()
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    assert cpu_step_seconds(module, (1, 4, 2), num_classes=3, batch_size=5, threads=threads + 1) > 0
    assert module.calls == [((5, 1, 4, 2), True, threads + 1)] * (WARM_UP_STEPS + MEASURED_STEPS)
    assert torch.get_num_threads() == threads
    assert not module.training
    assert all(torch.equal(tensor, before[name]) for name, tensor in module.state_dict().items())
