import pickle

import numpy as np
import pytest

from tigranet import TIGraNetClassifier


def test_an_estimator_of_an_earlier_version_asks_for_another_fit_in_one_line(mnist_012):
    images, labels = mnist_012.train.images[:40, 0].numpy(), mnist_012.train.labels[:40].numpy()
    classifier = TIGraNetClassifier("SC[2,2]-S[2]", epochs=1, random_state=0).fit(images[:30], labels[:30])
    old = pickle.loads(pickle.dumps(classifier))
    del old._reference, old.detector_
    with pytest.raises(ValueError, match="calibrate"):
        old.calibrate(images[30:], labels[30:]).novelty(images)
    calibrated = classifier.calibrate(images[30:], labels[30:])
    assert calibrated.novelty(images, share=0.5).shape == (40,)
    assert (calibrated.novelty(np.zeros_like(images[:1])) > 1).all()
