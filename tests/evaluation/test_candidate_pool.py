import itertools
from pathlib import Path

import numpy as np

from tigranet.evaluation.candidate_pool import Candidate, CandidatePool


def candidate(number: int, margin: float, name: str = "") -> Candidate:
    probabilities = np.array([0.5 + margin / 2, 0.5 - margin / 2])
    return Candidate(Path(name or f"{number}.png"), number, probabilities, np.zeros(2, np.float32))


def test_the_most_uncertain_images_are_kept_whatever_the_order():
    images = [candidate(number, margin) for number, margin in enumerate([0.9, 0.1, 0.5, 0.3, 0.7, 0.2])]
    for order in itertools.permutations(images):
        pool = CandidatePool(capacity=2)
        for image in order:
            pool.add(image)
        assert [kept.digest for kept in pool.candidates()] == [1, 5]  # the most uncertain first
        assert (len(pool), pool.duplicates) == (6, 0)


def test_a_copy_counts_once_under_the_first_name():
    for names in (["b", "a", "c"], ["c", "b", "a"], ["a", "b", "c"]):
        pool = CandidatePool(capacity=9)
        for name in names:
            pool.add(candidate(3, 0.5, name))
        (kept,) = pool.candidates()
        assert (kept.path.name, pool.duplicates, len(pool)) == ("a", 2, 1)


def test_a_copy_of_an_image_that_was_not_kept_does_not_come_back():
    pool = CandidatePool(capacity=1)
    for image in [candidate(1, 0.9), candidate(2, 0.1), candidate(1, 0.9)]:
        pool.add(image)
    assert [kept.digest for kept in pool.candidates()] == [2]
    assert pool.duplicates == 1
