import numpy as np
import pytest
from scipy import stats

from tigranet.evaluation.unknown.known_scores import KnownScores, check_share


@pytest.mark.parametrize("share", [0.5, 0.8, 0.95])
def test_at_least_the_share_of_new_images_is_accepted(share):
    generator = np.random.default_rng(0)
    accepted = [
        generator.exponential() <= KnownScores(tuple(generator.exponential(size=19))).limit(share) for _ in range(4000)
    ]
    assert share - 0.02 < np.mean(accepted) < share + 1 / 20 + 0.02


def test_few_images_have_the_prediction_limit_of_a_normal_distribution():
    scores = (0.0, 1.0, 2.0, 3.0, 9.0)
    expected = 3 + stats.t.ppf(0.95, 4) * np.std(scores, ddof=1) * np.sqrt(1.2)
    assert KnownScores(scores).limit(0.95) == pytest.approx(max(9, expected))
    assert KnownScores((1.0, 1.0)).limit(0.99) == 1
    generator = np.random.default_rng(0)
    accepted = [generator.normal() <= KnownScores(tuple(generator.normal(size=6))).limit(0.95) for _ in range(3000)]
    assert 0.94 < np.mean(accepted) < 0.98
    assert "at least 19 validation images, it has 5" in KnownScores(scores).notice(0.95)
    assert KnownScores(tuple(map(float, range(19)))).notice(0.95) is None


@pytest.mark.parametrize("share", [0.2, 0.5, 0.95])
def test_the_scale_has_the_limit_at_one(share):
    for scores in (tuple(map(float, range(30))), (2.0, 2.0), (5.0, 5.0, 5.0, 6.0)):
        known = KnownScores(scores)
        origin, unit = known.scale(share)
        assert unit > 0
        assert (known.limit(share) - origin) / unit == pytest.approx(1)
    origin, _ = KnownScores(tuple(map(float, range(31)))).scale(0.9)
    assert origin == 15  # the median has the novelty 0


def test_wrong_shares_and_scores_are_refused():
    for share in (0.0, 1.0, -1.0, 95.0, float("nan")):
        with pytest.raises(ValueError, match="between 0 and 1"):
            check_share(share)
    for share in ("0.9", True, None):
        with pytest.raises(TypeError):
            check_share(share)
    with pytest.raises(ValueError, match="at least 2 validation images, got 1"):
        KnownScores((1.0,))
    with pytest.raises(ValueError, match="finite"):
        KnownScores((1.0, float("inf")))
