import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import tigranet
from tigranet import InvariantFeatures, TIGraNetClassifier

TINY = "SC[2,2]-DP[9]-S[2]-FC[8]"
NOT_EQUIVALENT = {
    "check_sample_weight_equivalence_on_dense_data": "removing an image changes the batches that the others are in",
}


def expected_failures(estimator):
    return NOT_EQUIVALENT if isinstance(estimator, TIGraNetClassifier) else {}


@pytest.mark.filterwarnings("default")
@parametrize_with_checks(
    [InvariantFeatures(TINY), TIGraNetClassifier(TINY, epochs=3, random_state=0)],
    expected_failed_checks=expected_failures,
)
def test_scikit_learns_own_checks(estimator, check, as_a_user):
    check(estimator)


@pytest.fixture(scope="module")
def digits():
    """8 x 8 images of three digits, in [0, 1]."""
    bunch = load_digits(n_class=3)
    return bunch.images / 16, np.array(["zero", "one", "two"])[bunch.target]


@pytest.fixture(scope="module")
def fitted(digits):
    images, names = digits
    return TIGraNetClassifier("SC[3,3]-DP[40]-S[6]-FC[20]", epochs=20, random_state=0).fit(images[:300], names[:300])


def test_it_learns_and_answers_turned_images_alike(fitted, digits):
    images, names = digits
    assert fitted.score(images[300:], names[300:]) > 0.85
    turned = np.rot90(images[300:], axes=(1, 2)).copy()
    assert fitted.score(turned, names[300:]) == fitted.score(images[300:], names[300:])
    np.testing.assert_allclose(fitted.predict_proba(turned), fitted.predict_proba(images[300:]), atol=1e-4)


def test_labels_and_probabilities_go_together(fitted, digits):
    images, _ = digits
    assert fitted.classes_.tolist() == ["one", "two", "zero"]
    probabilities = fitted.predict_proba(images)
    np.testing.assert_allclose(probabilities.sum(1), 1)
    assert (fitted.classes_[probabilities.argmax(1)] == fitted.predict(images)).all()


def test_three_ways_to_write_images_are_one(fitted, digits):
    images, _ = digits
    wanted = fitted.predict_proba(images)
    np.testing.assert_array_equal(fitted.predict_proba(images.reshape(-1, 64)), wanted)
    np.testing.assert_array_equal(fitted.predict_proba(images[..., None]), wanted)
    np.testing.assert_array_equal(fitted.predict_proba(torch.from_numpy(images)), wanted)


def test_bytes_are_divided_by_255():
    pixels = np.random.default_rng(0).integers(0, 256, (20, 6, 6), dtype=np.uint8)
    features = InvariantFeatures(TINY).fit(pixels)
    np.testing.assert_allclose(features.transform(pixels), features.transform(pixels / 255), rtol=1e-5)


def test_colour_images_and_other_shapes():
    X = np.random.default_rng(0).random((12, 6, 9, 3))
    y = np.arange(12) % 2
    classifier = TIGraNetClassifier(TINY, epochs=2).fit(X, y)
    assert classifier.image_shape_ == (6, 9, 3)
    assert classifier.model_.in_maps == 3
    flat = TIGraNetClassifier(TINY, epochs=2, image_shape=(6, 9)).fit(X[..., 0].reshape(12, 54), y)
    assert flat.image_shape_ == (6, 9)
    assert InvariantFeatures(TINY).fit(X[..., 0].reshape(12, 54)).image_shape_ == (1, 54)


def test_it_works_in_pipelines_searches_and_cross_validation(digits):
    images, names = digits
    pipeline = make_pipeline(InvariantFeatures(), StandardScaler(), SVC())
    assert cross_val_score(pipeline, images, names, cv=3).mean() > 0.85
    X, y = images[:60].reshape(60, 64), names[:60]
    search = GridSearchCV(TIGraNetClassifier(TINY, epochs=2, random_state=0), {"boundary": ["free", "torus"]}, cv=2)
    assert search.fit(X, y).best_params_["boundary"] in ("free", "torus")


def test_it_clones_and_pickles(fitted, digits):
    images, _ = digits
    assert clone(fitted).get_params() == fitted.get_params()
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(fitted)).predict_proba(images), fitted.predict_proba(images)
    )


def test_transform_gives_the_statistics_of_the_trained_network(fitted, digits):
    images, _ = digits
    wanted = fitted.model_.features(torch.from_numpy(images[:5]).float().unsqueeze(1)).detach().numpy()
    np.testing.assert_allclose(fitted.transform(images[:5]), wanted, rtol=1e-6)


def test_a_weight_of_zero_is_no_image(digits):
    """The labels of half of the images are wrong, and their weight is 0."""
    images, names = digits
    wrong = np.roll(names[:200], 1)
    weight = np.r_[np.ones(200), np.zeros(200)]
    X, y = np.r_[images[:200], images[:200]], np.r_[names[:200], wrong]
    classifier = TIGraNetClassifier("SC[3,3]-DP[40]-S[6]-FC[20]", epochs=20, random_state=0)
    assert classifier.fit(X, y, sample_weight=weight).score(images[300:], names[300:]) > 0.85


def test_the_random_numbers_of_the_caller_are_left_alone(digits):
    images, names = digits
    torch.manual_seed(3)
    before = torch.get_rng_state()
    TIGraNetClassifier(TINY, epochs=1).fit(images[:30], names[:30])
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("X", "arguments", "message"),
    [
        (np.ones((6, 1)), {}, "an image has at least 2 pixels, got X with n_features=1"),
        (np.ones((6, 10)), {"image_shape": (3, 4)}, r"image_shape \(3, 4\) has 12 pixels, X has n_features=10"),
        (np.ones((6, 2, 2, 2, 2)), {}, r"X is \(n, H, W\), \(n, H, W, C\) or \(n, features\), got shape"),
        (np.ones((6, 4)), {"architecture": "SC[2]"}, "SC takes 2 numbers"),
        (np.ones((6, 4)), {"epochs": 0}, "epochs is at least 1, got 0"),
    ],
)
def test_wrong_arguments(X, arguments, message, as_a_user):
    with pytest.raises(ValueError, match=message):
        TIGraNetClassifier(**({"architecture": TINY} | arguments)).fit(X, np.arange(6) % 2)


def test_other_images_than_those_fitted_on_are_refused(fitted):
    with pytest.raises(
        ValueError, match=r"X has 81 features, but TIGraNetClassifier is expecting 64 .* shape \(8, 8\)"
    ):
        fitted.predict(np.ones((2, 9, 9)))


def test_the_package_names_them():
    assert tigranet.TIGraNetClassifier is TIGraNetClassifier
    with pytest.raises(AttributeError, match="module 'tigranet' has no attribute 'nothing'"):
        _ = tigranet.nothing
