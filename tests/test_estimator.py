import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
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


@pytest.fixture
def pixels():
    """Images of 8 bits."""
    return np.random.default_rng(0).integers(0, 256, (20, 6, 6), dtype=np.uint8)


def test_bytes_are_divided_by_255(pixels):
    features = InvariantFeatures(TINY).fit(pixels)
    np.testing.assert_allclose(features.transform(pixels), features.transform(pixels / 255), rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int16, np.int8])
def test_a_list_of_whole_numbers_is_read_as_the_array_it_was(dtype):
    limits = np.iinfo(dtype)
    X = np.random.default_rng(0).integers(limits.min, limits.max, (20, 6, 6), dtype=dtype, endpoint=True)
    features = InvariantFeatures(TINY).fit(X)
    assert features.scale_ == limits.max
    np.testing.assert_array_equal(features.transform(X.tolist()), features.transform(X))
    np.testing.assert_array_equal(features.transform(X.astype(np.int32)), features.transform(X))


def test_training_on_a_list_of_bytes_is_training_on_bytes(pixels):
    y = np.arange(20) % 2
    of_bytes, of_lists = (
        TIGraNetClassifier(TINY, epochs=2, random_state=0).fit(X, y) for X in (pixels, pixels.tolist())
    )
    assert of_bytes.scale_ == of_lists.scale_ == 255
    np.testing.assert_array_equal(of_lists.predict_proba(pixels), of_bytes.predict_proba(pixels))
    np.testing.assert_array_equal(of_lists.predict_proba(pixels[:1].tolist()), of_bytes.predict_proba(pixels[:1]))


@pytest.mark.parametrize(("largest", "scale"), [(0, 1), (1, 1), (2, 255), (255, 255), (256, 65535), (65535, 65535)])
def test_wide_whole_numbers_are_divided_by_what_covers_them(largest, scale):
    X = np.linspace(0, largest, 6 * 36).astype(np.int64).reshape(6, 6, 6)
    features = InvariantFeatures(TINY).fit(X)
    assert features.scale_ == scale
    np.testing.assert_allclose(features.transform(X), features.transform(X / scale), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(features.transform(X // 2), features.transform((X // 2 / scale).astype(np.float32)))


def test_whole_numbers_that_no_image_has_are_refused(pixels):
    X = pixels.astype(np.int64)
    with pytest.raises(ValueError, match=r"at most 16 bits, got 65536 in X: divide X to \[0, 1\]"):
        InvariantFeatures(TINY).fit(X + 65536 - X.max())
    for fitted_on in (pixels / 255, pixels > 127, (X > 127).astype(int)):
        with pytest.raises(ValueError, match=r"fitted on images in \[0, 1\], got whole numbers up to 255"):
            InvariantFeatures(TINY).fit(fitted_on).transform(X)
    with pytest.raises(ValueError, match=r"fitted on images in \[0, 255\], got whole numbers up to 510"):
        InvariantFeatures(TINY).fit(X).transform(2 * X)


def test_after_floats_beyond_the_unit_range_whole_numbers_are_as_they_are(pixels):
    features = InvariantFeatures(TINY).fit(pixels.astype(float))
    assert features.scale_ is None
    np.testing.assert_array_equal(features.transform(pixels.tolist()), features.transform(pixels.astype(float)))


def test_images_that_are_not_square_may_be_turned():
    X, y = np.random.default_rng(0).random((36, 12, 24)), np.arange(36) % 2
    X[y == 1, ::2] = 0  # stripes
    turned = np.rot90(X, axes=(1, 2))
    classifier = TIGraNetClassifier(TINY, epochs=5, random_state=0).fit(X, y)
    np.testing.assert_allclose(classifier.predict_proba(turned), classifier.predict_proba(X), atol=1e-5)
    features = InvariantFeatures(TINY).fit(X)
    np.testing.assert_allclose(features.transform(turned), features.transform(X), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(features.transform(X.reshape(36, -1)), features.transform(X))


def test_images_of_another_size_are_read_as_they_are(fitted, digits):
    images, _ = digits
    larger = np.pad(images[:5], ((0, 0), (1, 2), (0, 1)))
    wanted = fitted.model_.features(torch.from_numpy(larger).float().unsqueeze(1)).detach().numpy()
    np.testing.assert_allclose(fitted.transform(larger), wanted, rtol=1e-6)


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
        (np.ones((6, 0, 4)), {}, "an image has at least 2 pixels"),
        (np.ones((6, 4)), {"image_shape": 5}, r"image_shape is \(height, width\) or .*, got 5"),
        (np.ones((6, 2, 2)), {"image_shape": "2x2"}, "image_shape is .*, got '2x2'"),
        (np.ones((6, 4)), {"image_shape": (4,)}, r"image_shape is .*, got \(4,\)"),
        (np.ones((6, 4)), {"image_shape": (-2, -2)}, r"image_shape is .*, got \(-2, -2\)"),
        (np.ones((6, 3, 12, 12)), {}, r"channels come last: X.transpose\(0, 2, 3, 1\)"),
        (np.ones((6, 1, 8, 8)), {}, "channels come last"),
        (
            np.ones((6, 108)),
            {"image_shape": (3, 6, 6)},
            r"channels come last: X.reshape\(-1, 3, 6, 6\).transpose\(0, 2",
        ),
    ],
)
def test_wrong_arguments(X, arguments, message, as_a_user):
    with pytest.raises(ValueError, match=message):
        TIGraNetClassifier(**({"architecture": TINY} | arguments)).fit(X, np.arange(6) % 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"architecture": 3}, "architecture is a preset, .*, got 3"),
        ({"architecture": None}, "architecture is a preset, .*, got None"),
        ({"epochs": "3"}, "epochs is a whole number or None, got '3'"),
        ({"batch_size": 2.0}, "batch_size is a whole number or None, got 2.0"),
        ({"learning_rate": "x"}, "learning_rate is a number or None, got 'x'"),
        ({"jitter": "a"}, "jitter is a number, got 'a'"),
        ({"jitter": None}, "jitter is a number, got None"),
    ],
)
def test_arguments_of_a_wrong_type_are_named(arguments, message, as_a_user):
    with pytest.raises(TypeError, match=message):
        TIGraNetClassifier(**({"architecture": TINY} | arguments)).fit(np.ones((6, 4)), np.arange(6) % 2)


def test_numbers_of_numpy_are_numbers(as_a_user):
    chosen = {
        "epochs": np.int64(1),
        "batch_size": np.int32(3),
        "learning_rate": np.float32(0.01),
        "jitter": np.int64(0),
    }
    TIGraNetClassifier(TINY, **chosen).fit(np.random.default_rng(0).random((6, 4)), np.arange(6) % 2)


def test_the_features_name_wrong_arguments_too(as_a_user):
    with pytest.raises(TypeError, match=r"architecture is a preset, .*, got None"):
        InvariantFeatures(None).fit(np.ones((6, 4)))
    with pytest.raises(ValueError, match="channels come last"):
        InvariantFeatures(TINY).fit(np.ones((6, 3, 12, 12)))


@pytest.mark.parametrize(("label", "printed"), [(0, "0"), ("zero", "'zero'"), (1.0, "1.0")])
def test_one_class_is_printed_as_it_is_written(label, printed):
    with pytest.raises(ValueError, match=f"got one class: {printed}$"):
        TIGraNetClassifier(TINY).fit(np.ones((6, 4)), np.array([label] * 6))


def test_rows_of_another_length_are_refused(fitted):
    with pytest.raises(
        ValueError, match=r"X has 81 features, but TIGraNetClassifier is expecting 64 .* shape \(8, 8\)"
    ):
        fitted.predict(np.ones((2, 81)))


def test_another_number_of_channels_is_refused(fitted):
    with pytest.raises(ValueError, match=r"shape \(8, 8\), channels: 1; got X of shape \(2, 8, 8, 3\), channels: 3"):
        fitted.predict(np.ones((2, 8, 8, 3)))
    with pytest.raises(ValueError, match="channels come last"):
        fitted.predict(np.ones((2, 1, 8, 8)))
    of_colours = InvariantFeatures(TINY).fit(np.ones((2, 6, 6, 3)))
    with pytest.raises(ValueError, match=r"channels: 3; got X of shape \(2, 6, 6\), channels: 1"):
        of_colours.transform(np.ones((2, 6, 6)))


@pytest.mark.parametrize(
    ("arguments", "labels"),
    [({"epochs": 0}, "abc"), ({"architecture": None}, "abc"), ({"boundary": "none"}, "abc"), ({}, "a")],
)
def test_a_fit_that_fails_leaves_the_classifier_as_it_was(arguments, labels, digits, as_a_user):
    images, names = digits
    classifier = TIGraNetClassifier(TINY, epochs=1, random_state=0).fit(images[:30], names[:30])
    wanted, before = classifier.predict_proba(images), {**vars(classifier), **arguments}
    whole = (images[:30, :4, :4] * 16).astype(int)
    with pytest.raises((ValueError, TypeError)):
        classifier.set_params(**arguments).fit(whole, np.resize(list(labels), 30))
    assert vars(classifier) == before
    np.testing.assert_array_equal(classifier.predict_proba(images.reshape(-1, 64)), wanted)


def test_a_first_fit_that_fails_leaves_nothing_fitted(as_a_user):
    features = InvariantFeatures(TINY, boundary="none")
    with pytest.raises(ValueError, match="'free' or 'torus'"):
        features.fit(np.ones((6, 4)))
    with pytest.raises(NotFittedError):
        features.transform(np.ones((6, 4)))


def test_the_package_names_them():
    assert tigranet.TIGraNetClassifier is TIGraNetClassifier
    with pytest.raises(AttributeError, match="module 'tigranet' has no attribute 'nothing'"):
        _ = tigranet.nothing
