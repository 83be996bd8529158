import numpy as np
from sklearn.neighbors import NearestNeighbors

from tigranet.evaluation.unknown.nearest_neighbours import NEIGHBOUR, NearestNeighbours


def test_neighbours_are_those_of_scikit_learn(known, validation):
    rows, new = (
        x / np.linalg.norm(x, axis=1, keepdims=True) for x in (known.images.hidden.numpy(), validation.hidden.numpy())
    )
    expected = NearestNeighbors(n_neighbors=NEIGHBOUR).fit(rows).kneighbors(new)[0][:, -1]
    np.testing.assert_allclose(NearestNeighbours.fit(known, validation).scores(validation), expected)
