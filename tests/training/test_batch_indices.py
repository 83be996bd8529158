import torch

from tigranet.training.batch_indices import BatchIndices, random_state, set_random_state

CPU = torch.device("cpu")


def test_an_epoch_that_ended_is_not_continued():
    """Lightning does not ask for an index after the last one."""
    batches = BatchIndices(2)
    iterator = iter(batches)
    assert [next(iterator), next(iterator)] == [0, 1]
    assert not batches.is_inside
    assert batches.state_dict() == {"next": 0}
    assert list(batches) == [0, 1]


def test_a_state_that_is_loaded_after_the_iterator_was_made_counts():
    """Lightning makes the iterator before it restores a checkpoint."""
    batches = BatchIndices(3)
    iterator = iter(batches)
    batches.load_state_dict({"next": 1})
    assert list(iterator) == [1, 2]


def test_random_numbers_continue():
    state = random_state(CPU)
    expected = torch.rand(5)
    set_random_state(state, CPU)
    assert torch.equal(torch.rand(5), expected)
