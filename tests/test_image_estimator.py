import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import (
    check_methods_sample_order_invariance,
    check_methods_subset_invariance,
    check_transformer_get_feature_names_out,
)

from tigranet import InvariantFeatures, TIGraNetClassifier
from tigranet.architecture import PRESETS, Architecture
from tigranet.data.value_range import ValueRangeWarning

TINY = "SC[2,2]-DP[9]-S[2]-FC[8]"
ESTIMATORS = [TIGraNetClassifier(TINY, epochs=1, random_state=0), InvariantFeatures(TINY)]


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(0).random((12, 8, 8)), np.arange(12) % 3


@pytest.mark.filterwarnings("ignore::tigranet.data.value_range.ValueRangeWarning")
@pytest.mark.parametrize("preset", [preset for preset in PRESETS if not Architecture.parse(preset).num_coarsenings])
@pytest.mark.parametrize("check", [check_methods_sample_order_invariance, check_methods_subset_invariance])
def test_no_answer_depends_on_the_other_images(preset, check, without_shape_checks):
    """The checks pass tables of 3 columns, images of 1 x 3 pixels that cannot be coarsened."""
    for estimator in (TIGraNetClassifier(preset, epochs=1, random_state=0), InvariantFeatures(preset)):
        check(type(estimator).__name__, estimator)


@pytest.mark.parametrize("preset", PRESETS)
def test_features_have_the_same_bits_in_any_order(preset):
    X = np.random.default_rng(1).random((70, 12, 10))
    features, order = InvariantFeatures(preset).fit(X), np.random.default_rng(2).permutation(70)
    assert np.array_equal(features.transform(X)[order], features.transform(X[order]))


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_features_have_names(estimator, images, without_shape_checks):
    check_transformer_get_feature_names_out(type(estimator).__name__, estimator)
    names = estimator.fit(*images).get_feature_names_out()
    assert names.shape == (estimator.transform(images[0]).shape[1],)
    assert len(set(names)) == len(names)
    assert list(names[:4]) == ["map0_mean0", "map0_variance0", "map0_mean1", "map0_variance1"]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_features_as_a_table_of_pandas(estimator, images):
    X, y = images
    features = estimator.fit(X, y).transform(X)
    rows = pd.DataFrame(X.reshape(len(X), -1), index=[f"image {number}" for number in range(len(X))])
    scaler = make_pipeline(type(estimator)(**estimator.get_params()), StandardScaler()).set_output(transform="pandas")
    table = scaler.fit(rows, y)[0].transform(rows)
    assert list(table.columns) == list(estimator.get_feature_names_out())
    assert list(table.index) == list(rows.index)
    assert np.array_equal(table.to_numpy(), features)
    assert list(scaler.get_feature_names_out()) == list(table.columns)


@pytest.mark.filterwarnings("ignore::tigranet.data.value_range.ValueRangeWarning")
def test_an_image_without_finite_features_is_an_error_that_names_it(images):
    X, y = images
    hostile = X.copy()
    hostile[7] = 1e30
    for estimator in (TIGraNetClassifier("MC[4,2]-OP[2]-MC[4,2]-S[2]", epochs=1, random_state=0), InvariantFeatures()):
        estimator.fit(X, y)
        with pytest.raises(ValueError, match=r"1 of 12 images.* position 7"):
            estimator.transform(hostile)
    classifier = TIGraNetClassifier(TINY, epochs=1, random_state=0).fit(X, y)
    for method in (classifier.predict, classifier.predict_proba):
        with pytest.raises(ValueError, match="position 7"):
            method(hostile)


@pytest.mark.parametrize(("scale", "offset"), [(255, 0), (16, 0), (3000, -1000)], ids=["bytes", "16", "Hounsfield"])
def test_a_fit_on_floats_that_were_not_scaled_warns_once_with_the_remedy(scale, offset, images):
    X = scale * images[0] + offset
    with pytest.warns(ValueRangeWarning, match=r"expects images in \[0, 1\].*divide X") as record:
        features = InvariantFeatures(TINY).fit(X)
    features.transform(X)  # warnings are errors: the remedy was given in fit
    assert len(record) == 1
    assert f"{X.max():.4g}" in str(record[0].message)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_new_images_that_are_not_scaled_as_those_of_fit_warn(estimator, images):
    X, y = images
    estimator.fit(X, y)
    with pytest.warns(ValueRangeWarning, match=r"fitted on images in \[0, 1\].* as the images of fit"):
        estimator.transform(255 * X)


def test_standardised_interpolated_and_integer_images_do_not_warn(images):
    X = images[0]
    for legitimate in (
        (X - X.mean()) / X.std(),
        (X - X.mean(axis=0)) / X.std(axis=0),
        2 * X - 1,
        1.2 * X - 0.1,
        (255 * X).astype(np.uint8),
        (255 * X).astype(int),
    ):
        InvariantFeatures(TINY).fit(legitimate).transform(legitimate)
