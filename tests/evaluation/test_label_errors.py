import numpy as np
import torch

from tigranet.evaluation.label_errors import find_label_errors


def test_it_is_the_confident_joint_of_the_paper():
    """Image by image, as the definition is written, in plain Python."""
    generator = np.random.default_rng(0)
    labels = np.concatenate([generator.integers(0, 4, 200), np.arange(4)])
    probabilities = generator.dirichlet(np.full(4, 0.4), len(labels))
    thresholds = [
        np.mean([p[j] for p, label in zip(probabilities, labels, strict=True) if label == j]) for j in range(4)
    ]
    expected, suggested = [], []
    for p, label in zip(probabilities, labels, strict=True):
        confident = [j for j in range(4) if p[j] >= thresholds[j]]
        best = max(confident, key=lambda j: p[j]) if confident else label
        expected.append(best != label)
        suggested.append(best)
    result = find_label_errors(torch.from_numpy(probabilities), torch.from_numpy(labels))
    assert result.is_suspicious.tolist() == expected
    assert 10 < sum(expected) < 190
    assert [new for new, flag in zip(result.suggested.tolist(), expected, strict=True) if flag] == [
        new for new, flag in zip(suggested, expected, strict=True) if flag
    ]
    assert (result.suggested != torch.from_numpy(labels)).all()


def test_the_score_is_the_lead_of_the_best_other_class():
    probabilities = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0.2, 0.2, 0.6]])
    result = find_label_errors(probabilities, torch.tensor([0, 1, 2]))
    torch.testing.assert_close(result.score, torch.tensor([-0.5, 0.3, -0.4]))


def test_a_class_that_is_often_confused_is_not_accused():
    """All images of class 1 look like class 0, a little. No single one stands out."""
    probabilities = torch.tensor([[0.9, 0.1]] * 5 + [[0.55, 0.45]] * 5)
    result = find_label_errors(probabilities, torch.tensor([0] * 5 + [1] * 5))
    assert not result.is_suspicious.any()


def test_a_classifier_that_is_nearly_always_right_finds_a_label_of_which_it_is_less_sure_than_usual():
    probabilities = torch.tensor([[0.99, 0.01]] * 9 + [[0.01, 0.99]] * 9 + [[0.95, 0.05]])
    result = find_label_errors(probabilities, torch.tensor([0] * 9 + [1] * 10))
    assert result.is_suspicious.tolist() == [False] * 18 + [True]
