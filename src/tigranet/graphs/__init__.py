"""The graphs that signals live on, each as its normalized Laplacian."""

from tigranet.graphs.coarsening import Coarsening
from tigranet.graphs.grid import GridLaplacian
from tigranet.graphs.laplacian import Laplacian
from tigranet.graphs.sparse import SparseLaplacian
from tigranet.graphs.spectrum import Eigenbasis

__all__ = ["Coarsening", "Eigenbasis", "GridLaplacian", "Laplacian", "SparseLaplacian"]
