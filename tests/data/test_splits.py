import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tigranet.data.splits import draw, even, split


@given(st.lists(st.integers(3, 40), min_size=2, max_size=5), st.integers(0, 2**32))
def test_every_image_is_in_one_part_and_every_class_in_each(counts, seed):
    labels = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    parts = split(labels, [str(label) for label in range(len(counts))], seed)
    assert torch.equal(torch.cat(parts).sort().values, torch.arange(len(labels)))
    for part in parts:
        assert len(labels[part].unique()) == len(counts)
    for label, count in enumerate(counts):
        assert int((labels[parts[1]] == label).sum()) == max(1, round(0.15 * count))


@given(st.integers(3, 9), st.integers(1, 6), st.integers(0, 2**32))
def test_a_group_is_in_one_part(groups, views, seed):
    labels = torch.arange(2).repeat_interleave(groups * views)
    names = [f"{label}-{number}" for label in range(2) for number in range(groups) for _ in range(views)]
    parts = split(labels, ["a", "b"], seed % 2**32, groups=names)
    assert torch.equal(torch.cat(parts).sort().values, torch.arange(len(labels)))
    found = [{names[place] for place in part.tolist()} for part in parts]
    assert sum(map(len, found)) == 2 * groups


@given(st.lists(st.integers(1, 40), min_size=2, max_size=5), st.integers(0, 2**32), st.floats(0, 1))
def test_so_many_are_drawn_with_the_classes_in_proportion(counts, seed, part):
    labels = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    if len(labels) == len(counts):
        return
    wanted = len(counts) + int(part * (len(labels) - 1 - len(counts)))
    chosen, others = draw(labels, [str(label) for label in range(len(counts))], seed, wanted)
    assert len(chosen) == wanted
    assert torch.equal(torch.cat([chosen, others]).sort().values, torch.arange(len(labels)))


def test_a_draw_follows_the_seed_and_the_shares():
    labels = torch.tensor([0] * 60 + [1] * 30 + [2] * 10)
    chosen, _ = draw(labels, "abc", 0, 50)
    assert torch.bincount(labels[chosen]).tolist() == [30, 15, 5]
    assert torch.equal(chosen, draw(labels, "abc", 0, 50)[0])
    assert not torch.equal(chosen, draw(labels, "abc", 1, 50)[0])


@given(st.lists(st.integers(1, 40), min_size=1, max_size=5), st.integers(0, 2**32), st.integers(0, 250))
def test_an_even_draw_has_as_many_of_each_class_as_there_are(counts, seed, count):
    labels = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    chosen = even(labels, seed, count)
    assert len(chosen.unique()) == min(count, len(labels))
    drawn = torch.bincount(labels[chosen], minlength=len(counts)).tolist()
    for have, there in zip(drawn, counts, strict=True):
        assert have == there or have >= max(drawn) - 1


def test_a_larger_even_draw_has_the_images_of_a_smaller_one():
    labels = torch.randint(9, (1000,))
    small, large, other = even(labels, 3, 50), even(labels, 3, 100), even(labels, 4, 50)
    assert set(small.tolist()) < set(large.tolist())
    assert not torch.equal(small, other)


def test_a_class_that_cannot_be_split_is_named():
    with pytest.raises(ValueError, match="the class 'b' has 2 images that can be read, at least 3 are needed"):
        split(torch.tensor([0, 0, 0, 1, 1]), ["a", "b"], 0)
