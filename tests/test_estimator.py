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
from tigranet import InvariantFeatures, TIGraNet, TIGraNetClassifier
from tigranet.architecture import PRESETS
from tigranet.choose_architecture import PresetRange
from tigranet.recipe_parameters import RECIPE_PARAMETERS
from tigranet.training import Recipe

TINY = "SC[2,2]-DP[9]-S[2]-FC[8]"
EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": "removing an image changes the batches of the others",
}


def expected_failures(estimator):
    return EXPECTED_FAILURES if isinstance(estimator, TIGraNetClassifier) else {}


@pytest.mark.filterwarnings("ignore::tigranet.data.value_range.ValueRangeWarning")  # tables, not images
@pytest.mark.filterwarnings("default")
@parametrize_with_checks(
    [InvariantFeatures(TINY), TIGraNetClassifier(TINY, epochs=3, random_state=0)],
    expected_failed_checks=expected_failures,
)
def test_the_checks_of_scikit_learn_pass(estimator, check, without_shape_checks):
    check(estimator)


@pytest.fixture(scope="module")
def digits():
    """Images (8, 8) of three digits, in [0, 1], and their names."""
    bunch = load_digits(n_class=3)
    return bunch.images / 16, np.array(["zero", "one", "two"])[bunch.target]


@pytest.fixture(scope="module")
def fitted(digits):
    images, names = digits
    return TIGraNetClassifier("SC[3,3]-DP[40]-S[6]-FC[20]", epochs=20, random_state=0).fit(images[:300], names[:300])


def test_it_learns_and_gives_rotated_images_the_same_probabilities(fitted, digits):
    images, names = digits
    assert fitted.score(images[300:], names[300:]) > 0.85
    rotated = np.rot90(images[300:], axes=(1, 2)).copy()
    assert fitted.score(rotated, names[300:]) == fitted.score(images[300:], names[300:])
    np.testing.assert_allclose(fitted.predict_proba(rotated), fitted.predict_proba(images[300:]), atol=1e-4)


def test_the_label_is_the_class_of_the_highest_probability(fitted, digits):
    images, _ = digits
    assert fitted.classes_.tolist() == ["one", "two", "zero"]
    probabilities = fitted.predict_proba(images)
    np.testing.assert_allclose(probabilities.sum(1), 1)
    assert (fitted.classes_[probabilities.argmax(1)] == fitted.predict(images)).all()


def test_rows_channels_and_tensors_are_read_as_the_same_images(fitted, digits):
    images, _ = digits
    expected = fitted.predict_proba(images)
    np.testing.assert_array_equal(fitted.predict_proba(images.reshape(-1, 64)), expected)
    np.testing.assert_array_equal(fitted.predict_proba(images[..., None]), expected)
    np.testing.assert_array_equal(fitted.predict_proba(torch.from_numpy(images)), expected)


@pytest.fixture
def pixels():
    """Images in uint8."""
    return np.random.default_rng(0).integers(0, 256, (20, 6, 6), dtype=np.uint8)


def test_bytes_are_divided_by_255(pixels):
    features = InvariantFeatures(TINY).fit(pixels)
    np.testing.assert_allclose(features.transform(pixels), features.transform(pixels / 255), rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int16, np.int8])
def test_a_list_of_integers_is_read_like_the_array(dtype):
    limits = np.iinfo(dtype)
    X = np.random.default_rng(0).integers(limits.min, limits.max, (20, 6, 6), dtype=dtype, endpoint=True)
    features = InvariantFeatures(TINY).fit(X)
    assert features.scale_ == limits.max
    np.testing.assert_array_equal(features.transform(X.tolist()), features.transform(X))
    np.testing.assert_array_equal(features.transform(X.astype(np.int32)), features.transform(X))


def test_training_on_a_list_of_bytes_gives_the_classifier_of_the_array(pixels):
    y = np.arange(20) % 2
    of_bytes, of_lists = (
        TIGraNetClassifier(TINY, epochs=2, random_state=0).fit(X, y) for X in (pixels, pixels.tolist())
    )
    assert of_bytes.scale_ == of_lists.scale_ == 255
    np.testing.assert_array_equal(of_lists.predict_proba(pixels), of_bytes.predict_proba(pixels))
    np.testing.assert_array_equal(of_lists.predict_proba(pixels[:1].tolist()), of_bytes.predict_proba(pixels[:1]))


@pytest.mark.parametrize(("largest", "scale"), [(0, 1), (1, 1), (2, 255), (255, 255), (256, 65535), (65535, 65535)])
def test_wide_integers_are_divided_by_the_first_limit_that_covers_them(largest, scale):
    X = np.linspace(0, largest, 6 * 36).astype(np.int64).reshape(6, 6, 6)
    features = InvariantFeatures(TINY).fit(X)
    assert features.scale_ == scale
    np.testing.assert_allclose(features.transform(X), features.transform(X / scale), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(features.transform(X // 2), features.transform((X // 2 / scale).astype(np.float32)))


def test_integers_outside_the_range_of_images_are_errors(pixels):
    X = pixels.astype(np.int64)
    with pytest.raises(ValueError, match=r"16 bits, got 65536 .*\[0, 1\]"):
        InvariantFeatures(TINY).fit(X + 65536 - X.max())
    for fitted_pixels in (pixels / 255, pixels > 127, (X > 127).astype(int)):
        with pytest.raises(ValueError, match=r"\[0, 1\], got .* 255"):
            InvariantFeatures(TINY).fit(fitted_pixels).transform(X)
    with pytest.raises(ValueError, match=r"\[0, 255\], got .* 510"):
        InvariantFeatures(TINY).fit(X).transform(2 * X)


@pytest.mark.filterwarnings("ignore::tigranet.data.value_range.ValueRangeWarning")
def test_after_floats_outside_the_unit_range_integers_are_used_unchanged(pixels):
    features = InvariantFeatures(TINY).fit(pixels.astype(float))
    assert features.scale_ is None
    np.testing.assert_array_equal(features.transform(pixels.tolist()), features.transform(pixels.astype(float)))


def test_images_that_are_not_square_can_be_rotated():
    X, y = np.random.default_rng(0).random((36, 12, 24)), np.arange(36) % 2
    X[y == 1, ::2] = 0  # stripes
    rotated = np.rot90(X, axes=(1, 2))
    classifier = TIGraNetClassifier(TINY, epochs=5, random_state=0).fit(X, y)
    np.testing.assert_allclose(classifier.predict_proba(rotated), classifier.predict_proba(X), atol=1e-5)
    features = InvariantFeatures(TINY).fit(X)
    np.testing.assert_allclose(features.transform(rotated), features.transform(X), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(features.transform(X.reshape(36, -1)), features.transform(X))


def test_images_of_another_size_are_not_scaled(fitted, digits):
    images, _ = digits
    larger = np.pad(images[:5], ((0, 0), (1, 2), (0, 1)))
    expected = fitted.model_.features(torch.from_numpy(larger).float().unsqueeze(1)).detach().numpy()
    np.testing.assert_allclose(fitted.transform(larger), expected, rtol=1e-6)


def test_colour_images_and_rectangular_images():
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


def test_transform_gives_the_features_of_the_trained_network(fitted, digits):
    images, _ = digits
    expected = fitted.model_.features(torch.from_numpy(images[:5]).float().unsqueeze(1)).detach().numpy()
    np.testing.assert_allclose(fitted.transform(images[:5]), expected, rtol=1e-6)


def test_images_of_weight_zero_are_ignored(digits):
    """Half of the images have wrong labels and weight 0."""
    images, names = digits
    wrong = np.roll(names[:200], 1)
    weight = np.r_[np.ones(200), np.zeros(200)]
    X, y = np.r_[images[:200], images[:200]], np.r_[names[:200], wrong]
    classifier = TIGraNetClassifier("SC[3,3]-DP[40]-S[6]-FC[20]", epochs=20, random_state=0)
    assert classifier.fit(X, y, sample_weight=weight).score(images[300:], names[300:]) > 0.85


def test_the_random_state_of_the_caller_does_not_change(digits):
    images, names = digits
    torch.manual_seed(3)
    before = torch.get_rng_state()
    TIGraNetClassifier(TINY, epochs=1).fit(images[:30], names[:30])
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("X", "arguments", "message"),
    [
        (np.ones((6, 1)), {}, "at least 2 pixels, got X with n_features=1"),
        (np.ones((6, 10)), {"image_shape": (3, 4)}, r"\(3, 4\) has 12 pixels.* n_features=10"),
        (np.ones((6, 2, 2, 2, 2)), {}, r"\(n, H, W\), \(n, H, W, C\) or \(n, features\), got shape \(6, 2, 2, 2, 2\)"),
        (np.ones((6, 4)), {"architecture": "SC[2]"}, "SC .*2 numbers"),
        (np.ones((6, 4)), {"epochs": 0}, "epochs .*1, got 0"),
        (np.ones((6, 4)), {"window": "round"}, "window .*'auto', 'none', 'disc', got 'round'"),
        (np.ones((6, 4)), {"margin": -1}, "margin .*at least 0.*, got -1"),
        (np.ones((6, 0, 4)), {}, "at least 2 pixels"),
        (np.ones((6, 4)), {"image_shape": 5}, r"image_shape .*\(height, width\) or .*, got 5"),
        (np.ones((6, 2, 2)), {"image_shape": "2x2"}, "image_shape .*, got '2x2'"),
        (np.ones((6, 4)), {"image_shape": (4,)}, r"image_shape .*, got \(4,\)"),
        (np.ones((6, 4)), {"image_shape": (-2, -2)}, r"image_shape .*, got \(-2, -2\)"),
        (np.ones((6, 3, 12, 12)), {}, r"\(3, 12, 12\).* X\.transpose\(0, 2, 3, 1\)"),
        (np.ones((6, 1, 8, 8)), {}, r"\(1, 8, 8\).* X\.transpose\(0, 2, 3, 1\)"),
        (np.ones((6, 2, 8, 8)), {}, r"\(2, 8, 8\).* X\.transpose\(0, 2, 3, 1\)"),
        (np.ones((6, 4, 4)) * 1j, {}, "complex128"),
        (np.full((6, 4, 4), np.nan), {}, "NaN"),
        (np.full((6, 4, 4), np.inf), {}, "infinity"),
        (
            np.ones((6, 108)),
            {"image_shape": (3, 6, 6)},
            r"X\.reshape\(-1, 3, 6, 6\)\.transpose\(0, 2, 3, 1\)",
        ),
    ],
)
def test_invalid_values_are_errors(X, arguments, message, without_shape_checks):
    with pytest.raises(ValueError, match=message):
        TIGraNetClassifier(**({"architecture": TINY} | arguments)).fit(X, np.arange(6) % 2)


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        (np.array([0, 1, np.nan] * 2), ValueError, "NaN"),
        (np.array([0, 1, np.inf] * 2), ValueError, "infinity"),
        (np.array(["a", "b", np.nan] * 2, dtype=object), ValueError, "NaN"),
        (np.array(["a", None] * 3, dtype=object), ValueError, "label type"),
        (np.array([1, "b"] * 3, dtype=object), ValueError, "label type"),
        (np.array([b"a", b"b"] * 3), TypeError, "bytes"),
        (np.array([0.5, 1.5] * 3), ValueError, "label type: continuous"),
        (np.zeros((6, 2)), ValueError, "1d array|1-D|label type|shape"),
    ],
)
def test_labels_that_name_no_class_are_errors(labels, error, message, without_shape_checks):
    with pytest.raises(error, match=message):
        TIGraNetClassifier(TINY, epochs=1).fit(np.random.default_rng(0).random((6, 4, 4)), labels)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"architecture": 3}, "architecture .*, got 3"),
        ({"architecture": None}, "architecture .*, got None"),
        ({"epochs": "3"}, "epochs .*integer or None, got '3'"),
        ({"batch_size": 2.0}, "batch_size .*integer or None, got 2.0"),
        ({"learning_rate": "x"}, "learning_rate .*number or None, got 'x'"),
        ({"jitter": "a"}, "jitter .*number, got 'a'"),
        ({"jitter": None}, "jitter .*number, got None"),
        ({"margin": 1.5}, "margin .*integer, got 1.5"),
    ],
)
def test_values_of_a_wrong_type_are_errors(arguments, message, without_shape_checks):
    with pytest.raises(TypeError, match=message):
        TIGraNetClassifier(**({"architecture": TINY} | arguments)).fit(np.ones((6, 4)), np.arange(6) % 2)


def test_numbers_of_numpy_are_accepted(without_shape_checks):
    parameters = {
        "epochs": np.int64(1),
        "batch_size": np.int32(3),
        "learning_rate": np.float32(0.01),
        "jitter": np.int64(0),
        "balanced": np.bool_(True),
    }
    TIGraNetClassifier(TINY, **parameters).fit(np.random.default_rng(0).random((6, 4)), np.arange(6) % 2)


def test_the_architecture_is_chosen_for_the_number_and_the_size_of_the_images(monkeypatch):
    requests = []

    def choose(train_images, image_side, gpu):
        requests.append((train_images, image_side, gpu))
        return TINY

    monkeypatch.setattr("tigranet.estimator.choose_preset", choose)
    X, y = np.random.default_rng(0).random((10, 6, 9)), np.arange(10) % 2
    classifier = TIGraNetClassifier(epochs=1, random_state=0).fit(X, y)
    assert requests == [(10, 9, torch.cuda.is_available())]
    assert str(classifier.model_.architecture) == TINY
    assert classifier.architecture == "auto"
    named = TIGraNetClassifier(TINY, epochs=1, random_state=0).fit(X, y)
    np.testing.assert_array_equal(named.predict_proba(X), classifier.predict_proba(X))
    assert len(requests) == 1


@pytest.mark.parametrize(("architecture", "preset", "epochs"), [("fast", "paper-small", 8), ("accurate", "paper", 4)])
def test_the_fast_and_the_accurate_network_are_those_of_the_command_line(monkeypatch, architecture, preset, epochs):
    monkeypatch.setattr("tigranet.choose_architecture.CPU_PRESETS", (PresetRange("paper-small"),))
    monkeypatch.setattr("tigranet.choose_architecture.GPU_PRESETS", (PresetRange("paper"),))
    monkeypatch.setattr("tigranet.estimator.trains_on_cuda", lambda: False)
    monkeypatch.setattr("tigranet.choose_architecture.ALL_EPOCHS_IMAGES", 9)
    for_network, recipes = Recipe.for_network, []
    monkeypatch.setattr(Recipe, "for_network", lambda *a, **fields: for_network(*a, **(fields | {"epochs": 8})))
    monkeypatch.setattr("tigranet.training.fit", lambda net, train, validation, recipe, console: recipes.append(recipe))
    X, y = np.random.default_rng(0).random((10, 30, 30)), np.arange(10) % 2
    classifier = TIGraNetClassifier(architecture, random_state=0).fit(X, y)
    assert str(classifier.model_.architecture) == PRESETS[preset]
    TIGraNetClassifier(architecture, epochs=8, random_state=0).fit(X, y)
    TIGraNetClassifier(preset, random_state=0).fit(X, y)
    assert [recipe.epochs for recipe in recipes] == [epochs, 8, 8]


@pytest.mark.parametrize("architecture", ["fast", "accurate"])
def test_a_network_to_start_from_contradicts_a_default(architecture):
    X, y = np.random.default_rng(0).random((6, 8, 8)), np.arange(6) % 2
    with pytest.raises(ValueError, match=f"paper-mnist-012.*got '{architecture}'"):
        TIGraNetClassifier(architecture, init="paper-mnist-012", epochs=1).fit(X, y)


@pytest.mark.parametrize("kind", [TIGraNetClassifier, InvariantFeatures])
def test_the_window_and_the_margin_reach_the_network(kind):
    X, y = np.random.default_rng(0).random((6, 8, 8)), np.arange(6) % 2
    options = {"random_state": 0} | ({"epochs": 1} if kind is TIGraNetClassifier else {})
    fitted = kind(TINY, margin=2, **options).fit(X, y)
    assert (fitted.model_.window, fitted.model_.margin) == ("none", 2)
    fitted = kind(TINY, window="disc", **options).fit(X, y)
    assert (fitted.model_.window, fitted.model_.margin) == ("disc", 0)
    changed = X.copy()
    changed[:, 0, 0] = 1 - changed[:, 0, 0]
    np.testing.assert_array_equal(fitted.transform(changed), fitted.transform(X))  # a corner does not matter
    steerable = kind("LC[2,3]-MO[4]-S[0]", **options).fit(X, y)
    assert steerable.model_.window == "disc"  # noise fills its frame


def test_the_features_check_their_parameters_too(without_shape_checks):
    with pytest.raises(TypeError, match=r"architecture .*, got None"):
        InvariantFeatures(None).fit(np.ones((6, 4)))
    with pytest.raises(ValueError, match=r"X\.transpose\(0, 2, 3, 1\)"):
        InvariantFeatures(TINY).fit(np.ones((6, 3, 12, 12)))


RECIPE_VALUES = {
    "epochs": 2,
    "batch_size": 7,
    "learning_rate": 0.004,
    "weight_decay": 0.07,
    "schedule": "cosine",
    "jitter": 0.25,
    "shift": 0.12,
    "flip": True,
    "zoom": 0.1,
    "stretch": 0.11,
    "warp": 0.02,
    "tone": 0.3,
    "tint": 0.04,
    "blur": 0.5,
    "cutout": 0.2,
    "smoothing": 0.06,
    "dropout": 0.15,
    "average": 0.9,
    "accumulate": 3,
    "balanced": True,
    "keep": "best",
    "patience": 3,
}


@pytest.fixture
def recipes(monkeypatch):
    """The arguments of each training, which is not run: training images, validation images and recipe."""
    calls = []
    monkeypatch.setattr("tigranet.training.fit_network.fit", lambda net, *arguments: calls.append(arguments[:3]))
    return calls


def test_every_training_parameter_of_the_table_reaches_the_recipe(recipes):
    assert set(RECIPE_VALUES) == set(RECIPE_PARAMETERS)
    images, labels = np.random.default_rng(0).random((40, 6, 6)), np.arange(40) % 2
    TIGraNetClassifier(TINY, **RECIPE_VALUES).fit(images, labels)
    ((_, _, recipe),) = recipes
    assert {name: getattr(recipe, name) for name in RECIPE_PARAMETERS} == RECIPE_VALUES
    assert set(RECIPE_PARAMETERS) < set(TIGraNetClassifier().get_params())


@pytest.mark.parametrize("architecture", [TINY, "MC[2,2]-OP[2]-S[1]"])
def test_without_parameters_the_recipe_is_that_of_the_network(recipes, architecture):
    images, labels = np.random.default_rng(0).random((40, 6, 6)), np.arange(40) % 2
    TIGraNetClassifier(architecture, random_state=0).fit(images, labels)
    ((train, validation, recipe),) = recipes
    assert recipe == Recipe.for_network(TIGraNet(architecture, 2), 40, seed=recipe.seed)
    assert (len(train.labels), validation) == (40, None)


@pytest.mark.parametrize("parameters", [{"keep": "best"}, {"patience": 2}])
def test_validation_images_are_held_out_of_every_class(recipes, parameters):
    images, labels = np.random.default_rng(0).random((80, 6, 6)).astype(np.float32), np.repeat([0, 1], [60, 20])
    weights = np.linspace(0.5, 1, 80).astype(np.float32)
    for seed in (0, 0, 1):
        classifier = TIGraNetClassifier(TINY, validation_fraction=0.25, random_state=seed, **parameters)
        classifier.fit(images, labels, sample_weight=weights)
    train, validation, recipe = recipes[0]
    assert torch.bincount(train.labels).tolist() == [45, 15]
    assert torch.bincount(validation.labels).tolist() == [15, 5]
    assert recipe.epochs == Recipe.for_images(60).epochs
    pixels = torch.cat([train.images, validation.images]).flatten(1)
    order = [int((torch.from_numpy(images).flatten(1) == row).all(1).nonzero()) for row in pixels]
    assert sorted(order) == list(range(80))
    assert torch.cat([train.weights, validation.weights]).tolist() == weights[order].tolist()
    assert torch.equal(recipes[1][1].images, validation.images)
    assert not torch.equal(recipes[2][1].images, validation.images)


@pytest.mark.parametrize("parameters", [{"keep": "best"}, {"patience": 2, "schedule": "cosine"}, {"balanced": True}])
def test_it_learns_with_other_training_parameters(digits, parameters):
    images, names = digits
    classifier = TIGraNetClassifier("SC[3,3]-DP[40]-S[6]-FC[20]", epochs=20, random_state=0, **parameters)
    assert classifier.fit(images[:300], names[:300]).score(images[300:], names[300:]) > 0.85


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"validation_fraction": 1.5}, ValueError, r"validation_fraction .*\(0, 1\), got 1.5"),
        ({"validation_fraction": "0.1"}, TypeError, "validation_fraction .*'0.1'"),
        ({"validation_fraction": 0.01}, ValueError, r"0\.01 of 6 images of 2 classes.* keep='last'"),
        ({"keep": "first"}, ValueError, "keep .*'last' or 'best', got 'first'"),
    ],
)
def test_invalid_parameters_of_the_validation_are_errors(parameters, error, message, without_shape_checks):
    with pytest.raises(error, match=message):
        TIGraNetClassifier(TINY, **({"keep": "best"} | parameters)).fit(np.ones((6, 4)), np.arange(6) % 2)


@pytest.mark.parametrize(("label", "printed"), [(0, "0"), ("zero", "'zero'"), (1.0, "1.0")])
def test_a_single_class_is_an_error_that_names_it(label, printed):
    with pytest.raises(ValueError, match=f"got one class: {printed}$"):
        TIGraNetClassifier(TINY).fit(np.ones((6, 4)), np.array([label] * 6))


def test_rows_of_another_length_are_errors(fitted):
    with pytest.raises(
        ValueError, match=r"X has 81 features, but TIGraNetClassifier is expecting 64 .* shape \(8, 8\)"
    ):
        fitted.predict(np.ones((2, 81)))


def test_another_number_of_channels_is_an_error(fitted):
    with pytest.raises(ValueError, match=r"shape \(8, 8\), channels: 1; got X of shape \(2, 8, 8, 3\), channels: 3"):
        fitted.predict(np.ones((2, 8, 8, 3)))
    with pytest.raises(ValueError, match=r"X\.transpose\(0, 2, 3, 1\)"):
        fitted.predict(np.ones((2, 1, 8, 8)))
    colour_features = InvariantFeatures(TINY).fit(np.ones((2, 6, 6, 3)))
    with pytest.raises(ValueError, match=r"channels: 3; got X of shape \(2, 6, 6\), channels: 1"):
        colour_features.transform(np.ones((2, 6, 6)))


@pytest.mark.parametrize(
    ("arguments", "labels"),
    [({"epochs": 0}, "abc"), ({"architecture": None}, "abc"), ({"boundary": "none"}, "abc"), ({}, "a")],
)
def test_a_fit_that_fails_does_not_change_the_classifier(arguments, labels, digits, without_shape_checks):
    images, names = digits
    classifier = TIGraNetClassifier(TINY, epochs=1, random_state=0).fit(images[:30], names[:30])
    expected, before = classifier.predict_proba(images), {**vars(classifier), **arguments}
    integers = (images[:30, :4, :4] * 16).astype(int)
    with pytest.raises((ValueError, TypeError)):
        classifier.set_params(**arguments).fit(integers, np.resize(list(labels), 30))
    assert vars(classifier) == before
    np.testing.assert_array_equal(classifier.predict_proba(images.reshape(-1, 64)), expected)


def test_a_first_fit_that_fails_leaves_the_estimator_unfitted(without_shape_checks):
    features = InvariantFeatures(TINY, boundary="none")
    with pytest.raises(ValueError, match="'free' or 'torus'"):
        features.fit(np.ones((6, 4)))
    with pytest.raises(NotFittedError):
        features.transform(np.ones((6, 4)))


def test_the_package_exports_the_estimators():
    assert tigranet.TIGraNetClassifier is TIGraNetClassifier
    with pytest.raises(AttributeError, match=r"'tigranet' .*'nothing'"):
        _ = tigranet.nothing


def test_an_image_without_a_finite_answer_is_an_error_that_names_its_position(digits):
    classifier = TIGraNetClassifier("SC[2,2]-S[2]", epochs=1, random_state=0).fit(*(part[:40] for part in digits[:2]))
    with torch.no_grad():
        for parameter in classifier.model_.parameters():
            parameter.fill_(1e30)
    images = np.concatenate([np.zeros_like(digits[0][:2]), digits[0][:3]])
    for method in (classifier.predict, classifier.predict_proba, classifier.transform):
        with pytest.raises(ValueError, match=r"no finite answer for 3 of 5 images.* position 2"):
            method(images)


def test_label_sets_cover_new_images_and_are_the_same_for_quarter_turns(fitted, digits):
    images, names = digits
    with pytest.raises(ValueError, match="calibrate"):
        fitted.predict_sets(images[:2])
    calibrated = pickle.loads(pickle.dumps(fitted)).calibrate(images[300:420], names[300:420])
    sets = calibrated.predict_sets(images[420:], coverage=0.9)
    assert (sets.shape, sets.dtype) == ((len(images) - 420, 3), np.dtype(bool))
    assert sets[np.arange(len(sets)), np.searchsorted(calibrated.classes_, names[420:])].mean() > 0.8
    assert (sets[np.arange(len(sets)), calibrated.predict_proba(images[420:]).argmax(1)]).all()
    for turns in (1, 2, 3):
        rotated = np.rot90(images[420:], turns, axes=(1, 2)).copy()
        np.testing.assert_array_equal(calibrated.predict_sets(rotated, coverage=0.9), sets)


def test_the_novelty_tells_noise_from_digits_and_is_the_same_for_quarter_turns(fitted, digits):
    images, names = digits
    with pytest.raises(ValueError, match="calibrate"):
        fitted.novelty(images[:2])
    calibrated = pickle.loads(pickle.dumps(fitted)).calibrate(images[300:420], names[300:420])
    novelty = calibrated.novelty(images[420:])
    assert (novelty.shape, (novelty <= 1).mean() > 0.85) == ((len(images) - 420,), True)
    noise = np.random.default_rng(0).random((9, *images.shape[1:]), dtype=np.float32)
    assert (calibrated.novelty(noise) > 1).all()
    for turns in (1, 2, 3):
        rotated = np.rot90(images[420:], turns, axes=(1, 2)).copy()
        np.testing.assert_array_equal(calibrated.novelty(rotated), novelty)
    with pytest.raises(ValueError, match="between 0 and 1"):
        calibrated.novelty(images[:3], 95.0)
    with pytest.raises(NotFittedError):
        TIGraNetClassifier().novelty(images[:3])


def test_too_few_images_for_the_coverage_give_a_warning_and_wrong_labels_an_error(fitted, digits):
    images, names = digits
    calibrated = pickle.loads(pickle.dumps(fitted)).calibrate(images[300:310], names[300:310])
    with pytest.warns(UserWarning, match="at least 19 validation images"):
        assert calibrated.predict_sets(images[:3], 0.95).all()
    with pytest.raises(ValueError, match="'seven'"):
        calibrated.calibrate(images[:2], ["zero", "seven"])
    with pytest.raises(ValueError, match="between 0 and 1"):
        calibrated.predict_sets(images[:3], 95.0)
    with pytest.raises(NotFittedError):
        TIGraNetClassifier().predict_sets(images[:3])
    with pytest.raises(NotFittedError):
        TIGraNetClassifier().calibrate(images[:3], names[:3])


def test_images_that_fit_holds_out_calibrate_label_sets(digits):
    images, names = digits
    classifier = TIGraNetClassifier(TINY, epochs=1, keep="best", random_state=0).fit(images[:100], names[:100])
    assert classifier.calibration_.images == 15
    assert classifier.predict_sets(images[100:110], 0.9).any(1).all()


def test_a_second_fit_may_start_from_the_first(digits):
    """With a learning rate of almost zero, the classes of the first fit keep their answers among the others."""
    images, names = digits
    two = names != "two"
    classifier = TIGraNetClassifier(TINY, epochs=3, random_state=0, warm_start=True).fit(images[two], names[two])
    before = classifier.model_.classifier[-1].weight.clone()
    classifier.set_params(epochs=1, learning_rate=1e-12, schedule="cosine").fit(images, names)
    assert classifier.classes_.tolist() == ["one", "two", "zero"]
    torch.testing.assert_close(classifier.model_.classifier[-1].weight[[0, 2]], before)
    assert classifier.model_.class_names == ("one", "two", "zero")
    fresh = clone(classifier).fit(images, names)
    assert not torch.equal(fresh.model_.classifier[-1].weight[[0, 2]], before)


def test_a_fit_may_start_from_a_saved_network(digits, tmp_path):
    images, names = digits
    TIGraNet(TINY, 2, class_names=["two", "three"], margin=1).save_pretrained(tmp_path)
    options = {"epochs": 1, "learning_rate": 1e-12, "schedule": "cosine", "random_state": 0}
    classifier = TIGraNetClassifier(init=tmp_path, **options).fit(images, names)
    saved = TIGraNet.from_pretrained(tmp_path)
    torch.testing.assert_close(classifier.model_.classifier[-1].weight[1], saved.classifier[-1].weight[0])
    assert (str(classifier.model_.architecture), classifier.model_.margin) == (TINY, 1)
    with pytest.raises(ValueError, match="architecture"):
        TIGraNetClassifier("paper", init=tmp_path, **options).fit(images, names)
    with pytest.raises(ValueError, match="channels"):
        TIGraNetClassifier(init=tmp_path, **options).fit(np.stack([images] * 3, -1), names)
