"""Small graphs of many kinds, as dense adjacency matrices."""

import numpy as np
from scipy.spatial import ConvexHull

from oracles import grid_adjacency, random_graph


def from_edges(*edges):
    """Return a dense adjacency matrix from edges (i, j) or (i, j, weight)."""
    nodes = 1 + max(max(edge[:2]) for edge in edges)
    adjacency = np.zeros((nodes, nodes))
    for i, j, *weight in edges:
        adjacency[i, j] = adjacency[j, i] = weight[0] if weight else 1
    return adjacency


def path(nodes):
    return from_edges(*((i, i + 1) for i in range(nodes - 1)))


def ring(nodes):
    return from_edges(*((i, (i + 1) % nodes) for i in range(nodes)))


def circulant(nodes, weights):
    """Return the ring in which each node is joined to the nodes 1, 2, ... steps away, by edges of these weights."""
    edges = [((i, (i + step) % nodes, weight)) for i in range(nodes) for step, weight in enumerate(weights, 1)]
    return from_edges(*edges)


def star(leaves):
    return from_edges(*((0, i) for i in range(1, leaves + 1)))


def nearest_neighbours(points=200, k=6, seed=0):
    """Return the graph in which each random point of a square is joined to its k nearest points."""
    position = np.random.default_rng(seed).random((points, 2))
    distance = np.linalg.norm(position[:, None] - position, axis=-1)
    adjacency = np.zeros((points, points))
    nearest = np.argsort(distance, axis=1)[:, 1 : k + 1]
    np.put_along_axis(adjacency, nearest, 1, axis=1)
    return np.maximum(adjacency, adjacency.T) * np.exp(-((distance / 0.05) ** 2))


def sphere(points=150):
    """Return the mesh of triangles between points that cover a sphere evenly, with edges of weight 1."""
    height = 1 - (2 * np.arange(points) + 1) / points
    angle = np.pi * (3 - 5**0.5) * np.arange(points)
    radius = np.sqrt(1 - height**2)
    position = np.stack((radius * np.cos(angle), radius * np.sin(angle), height), axis=1)
    adjacency = np.zeros((points, points))
    for i, j, k in ConvexHull(position).simplices:
        adjacency[[i, j, k, j, k, i], [j, k, i, i, j, k]] = 1
    return adjacency


def side_by_side(*adjacencies):
    """Return the graph that consists of several graphs without edges between them."""
    nodes = sum(map(len, adjacencies))
    result, start = np.zeros((nodes, nodes)), 0
    for adjacency in adjacencies:
        end = start + len(adjacency)
        result[start:end, start:end] = adjacency
        start = end
    return result


def of_many_magnitudes(nodes=40, seed=0):
    """Return a random graph with weights from 1e-120 to 1e120."""
    rng = np.random.default_rng(seed)
    upper = np.triu(random_graph(nodes, seed) * 10.0 ** rng.uniform(-120, 120, (nodes, nodes)), 1)
    return upper + upper.T


GRAPHS = {
    "path": path(9),
    "ring": ring(10),
    "odd ring": ring(7),
    "star": star(9),
    "complete": np.ones((8, 8)) - np.eye(8),
    "grid": grid_adjacency(6, 7, 8, "free"),
    "torus": grid_adjacency(5, 6, 4, "torus"),
    "random weights": random_graph(60, seed=3),
    "nearest neighbours": nearest_neighbours(),
    "sphere": sphere(),
    "weights of many magnitudes": of_many_magnitudes(),
    "components": side_by_side(path(2), ring(3), path(6), star(3), path(2)),
}
