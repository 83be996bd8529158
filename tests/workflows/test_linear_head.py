"""The last layer of the network is logistic regression on its standardised features."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tigranet import TIGraNet
from tigranet.workflows.linear_head import (
    MISSING_CLASS_BIAS,
    LinearHead,
    cross_validate,
    out_of_sample_logits,
    stratified_folds,
)


def clusters(count=60, classes=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(count) % classes
    return 50 + labels[:, None] + 0.7 * torch.randn(count, 6, generator=generator), labels


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_are_those_of_scikit_learn(classes):
    features, labels = clusters(classes=classes)
    reference = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(features.double(), labels)
    expected = reference.predict_proba(features.double())
    head = LinearHead.fit(features, labels, classes)
    np.testing.assert_allclose(head(features).softmax(1), expected, atol=1e-3)


@pytest.mark.parametrize("architecture", ["SC[2,2]-S[2]", "LC[2,3]-MO[3]-S[3]"])
def test_a_network_answers_like_the_head(mnist_012, architecture):
    """Networks with LC add a larger number to the variances of their statistics."""
    images, labels = mnist_012.train.images[:40], mnist_012.train.labels[:40]
    torch.manual_seed(0)
    net = TIGraNet(architecture, 3).eval()
    features = net.features(images).detach()
    head = LinearHead.fit(features, labels, 3)
    head.copy_to(net)
    torch.testing.assert_close(net(images).double(), head(features), rtol=1e-3, atol=1e-3)
    assert torch.equal(net.features(images), features)
    with pytest.raises(ValueError, match="one linear layer"):
        head.copy_to(TIGraNet("SC[2,2]-S[2]-FC[3]", 3))
    with pytest.raises(ValueError, match="one linear layer"):
        head.copy_to(TIGraNet("SC[2,2]-S[2]", 3, init="paper"))


def test_a_class_without_images_is_never_the_answer():
    features, labels = clusters(classes=2)
    head = LinearHead.fit(features, 2 * labels, 4)
    assert head(features).argmax(1).unique().tolist() == [0, 2]
    assert head.bias[[1, 3]].tolist() == [MISSING_CLASS_BIAS] * 2


def test_features_that_do_not_vary_do_not_matter():
    features, labels = clusters()
    constant = torch.cat([features, torch.full((60, 1), 7.0)], 1)
    head, other = LinearHead.fit(features, labels, 3), LinearHead.fit(constant, labels, 3)
    changed = torch.cat([features, torch.full((60, 1), 9.0)], 1)
    torch.testing.assert_close(other(changed), head(features), atol=0.02, rtol=0.02)


def test_one_class_is_an_error():
    with pytest.raises(ValueError, match="2 classes"):
        LinearHead.fit(torch.rand(4, 2), torch.zeros(4, dtype=torch.long), 2)


def test_cross_validation_never_sees_the_label_of_an_image():
    """With random labels, a classifier that saw them would be nearly always right; this one is right by chance."""
    features = torch.randn(200, 150)
    labels = torch.arange(200) % 2
    is_correct = cross_validate(features, labels, stratified_folds(labels, 5, seed=0))
    assert 0.3 < is_correct.double().mean() < 0.7
    assert LinearHead.fit(features, labels, 2)(features).argmax(1).eq(labels).double().mean() > 0.95


@pytest.mark.parametrize(("folds", "count"), [(5, 23), (2, 2), (3, 7)])
def test_folds_have_their_share_of_every_class(folds, count):
    labels = torch.cat([torch.zeros(count), torch.ones(2 * count)]).long()
    numbers = stratified_folds(labels, folds, seed=1)
    for label in (0, 1):
        sizes = numbers[labels == label].bincount(minlength=folds)
        assert sizes.max() - sizes.min() <= 1
    assert torch.equal(numbers, stratified_folds(labels, folds, seed=1))


def test_the_logits_of_an_image_do_not_depend_on_its_own_label():
    features, labels = clusters()
    folds = stratified_folds(labels, 3, seed=0)
    changed = labels.clone()
    changed[folds == 1] = 0
    logits, others = (out_of_sample_logits(features, each, folds, 4) for each in (labels, changed))
    assert torch.equal(logits[folds == 1], others[folds == 1])
    assert not torch.equal(logits[folds == 0], others[folds == 0])
    assert (logits.argmax(1) == labels).double().mean() > 0.6


def test_images_that_are_not_used_have_logits_and_no_influence():
    features, labels = clusters()
    folds, is_used, steps = stratified_folds(labels, 3, seed=0), torch.arange(60) % 5 > 0, []
    changed = torch.where(is_used, labels, 0)
    logits, others = (
        out_of_sample_logits(features, each, folds, 3, is_used, lambda: steps.append(1)) for each in (labels, changed)
    )
    assert torch.equal(logits, others)
    assert len(steps) == 6
