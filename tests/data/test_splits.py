from itertools import combinations

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tigranet.data.splits import HELD_OUT, draw, draw_balanced, split

SEEDS = st.integers(0, 2**32)


def labels_of(counts):
    return torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))


def class_sizes(labels, indices, num_classes):
    return torch.bincount(labels[indices], minlength=num_classes).tolist()


@given(st.lists(st.integers(3, 40), min_size=2, max_size=5), SEEDS)
def test_every_image_is_in_one_part_and_every_part_has_its_fraction_of_each_class(counts, seed):
    labels = labels_of(counts)
    parts = split(labels, [str(label) for label in range(len(counts))], seed)
    assert torch.equal(torch.cat(parts).sort().values, torch.arange(len(labels)))
    held_out = [max(1, round(HELD_OUT * count)) for count in counts]
    assert class_sizes(labels, parts[0], len(counts)) == [
        count - 2 * size for count, size in zip(counts, held_out, strict=True)
    ]
    for part in parts[1:]:
        assert class_sizes(labels, part, len(counts)) == held_out


@settings(deadline=None)  # the first call imports scikit-learn
@given(st.integers(3, 9), st.integers(1, 6), SEEDS)
def test_every_group_is_in_one_part(groups, views, seed):
    labels = torch.arange(2).repeat_interleave(groups * views)
    names = [f"{label}-{number}" for label in range(2) for number in range(groups) for _ in range(views)]
    parts = split(labels, ["a", "b"], seed % 2**32, groups=names)
    assert torch.equal(torch.cat(parts).sort().values, torch.arange(len(labels)))
    groups_of_parts = [{names[position] for position in part.tolist()} for part in parts]
    assert sum(map(len, groups_of_parts)) == 2 * groups


def fair_shares(counts, count):
    """Return real numbers proportional to ``counts``, except that those below 1 are raised to 1, of the sum ``count``.

    The factor of the proportion is found by bisection.
    """
    low, high = 0.0, count / min(counts)
    for _ in range(200):
        factor = (low + high) / 2
        low, high = (factor, high) if sum(max(1.0, factor * size) for size in counts) < count else (low, factor)
    return [max(1.0, high * size) for size in counts]


CLASS_COUNTS = st.lists(st.integers(1, 40) | st.integers(1, 3) | st.integers(100, 3000), min_size=2, max_size=12)


@given(CLASS_COUNTS, SEEDS, st.floats(0, 1) | st.just(0.0))
@example([100, 1, 1, 1], 0, 0.0)
@example([1000, 3, 3, 3, 3], 0, 5 / 1006)
@example([40, 1, 1, 1, 1], 0, 0.0)
@example([1000, 100, *[1] * 20], 0, 0.04)
def test_a_draw_has_every_class_and_the_classes_in_proportion(counts, seed, fraction):
    labels = labels_of(counts)
    if len(labels) == len(counts):
        return
    count = len(counts) + int(fraction * (len(labels) - 1 - len(counts)))
    train, others = draw(labels, [str(label) for label in range(len(counts))], seed, count)
    assert len(train) == count
    assert torch.equal(torch.cat([train, others]).sort().values, torch.arange(len(labels)))
    sizes = class_sizes(labels, train, len(counts))
    assert min(sizes) >= 1
    for size, share in zip(sizes, fair_shares(counts, count), strict=True):
        assert abs(size - share) < 1 + 1e-9  # as after rounding by largest remainders
    shares = [count * size / len(labels) for size in counts]
    if min(shares) >= 1:  # no class is so rare that it has to be preferred
        assert all(abs(size - share) < 1 for size, share in zip(sizes, shares, strict=True))
    for (small, small_size), (large, large_size) in combinations(sorted(zip(counts, sizes, strict=True)), 2):
        assert small == large or small_size <= large_size


@pytest.mark.parametrize(
    ("counts", "count", "expected"),
    [
        ([60, 30, 10], 50, [30, 15, 5]),
        ([5, 5], 2, [1, 1]),
        ([40, 1], 20, [19, 1]),
        ([100, 1, 1, 1], 4, [1, 1, 1, 1]),
        ([1000, 3, 3, 3, 3], 10, [6, 1, 1, 1, 1]),
        ([1000, 100, *[1] * 20], 60, [36, 4, *[1] * 20]),  # the frequent classes keep their proportion of 10 : 1
        ([7, 7, 7], 10, [4, 3, 3]),
    ],
)
def test_the_classes_of_a_draw(counts, count, expected):
    labels = labels_of(counts)
    train, _ = draw(labels, [str(label) for label in range(len(counts))], 0, count)
    assert class_sizes(labels, train, len(counts)) == expected


def test_the_positions_of_a_draw_stay_the_same_for_a_seed():
    train, _ = draw(labels_of([6, 6, 6]), "abc", 5, 7)
    assert train.tolist() == [0, 2, 3, 8, 10, 16, 17]


def test_a_draw_refuses_a_class_without_images():
    with pytest.raises(ValueError, match=r"'b', got 0"):
        draw(torch.tensor([0, 0, 2, 2]), "abc", 0, 3)


def test_a_draw_depends_on_the_seed():
    labels = labels_of([60, 30, 10])
    train, _ = draw(labels, "abc", 0, 50)
    assert class_sizes(labels, train, 3) == [30, 15, 5]
    assert torch.equal(train, draw(labels, "abc", 0, 50)[0])
    assert not torch.equal(train, draw(labels, "abc", 1, 50)[0])


@pytest.mark.parametrize("count", [1, 10])
def test_a_draw_needs_an_image_per_class_and_leaves_one_for_testing(count):
    with pytest.raises(ValueError, match=rf"2 to 9 .*10 images of 2 classes.*got {count}"):
        draw(labels_of([5, 5]), "ab", 0, count)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=5), SEEDS, st.integers(0, 250))
def test_an_even_draw_has_equally_many_images_of_each_class(counts, seed, count):
    labels = labels_of(counts)
    indices = draw_balanced(labels, seed, count)
    assert len(indices.unique()) == min(count, len(labels))
    sizes = class_sizes(labels, indices, len(counts))
    for size, available in zip(sizes, counts, strict=True):
        assert size == available or size >= max(sizes) - 1


def test_a_larger_even_draw_contains_a_smaller_one():
    labels = torch.randint(9, (1000,))
    small, large, other = draw_balanced(labels, 3, 50), draw_balanced(labels, 3, 100), draw_balanced(labels, 4, 50)
    assert set(small.tolist()) < set(large.tolist())
    assert not torch.equal(small, other)


def test_the_error_names_a_class_that_is_too_small():
    with pytest.raises(ValueError, match=r"at least 3 .*'b', got 2"):
        split(torch.tensor([0, 0, 0, 1, 1]), ["a", "b"], 0)


def test_a_draw_from_classes_of_one_image_each_is_refused():
    with pytest.raises(ValueError, match="3 images of 3 classes"):
        draw(torch.arange(3), "abc", 0, 3)
