"""Evidence maps: how much each pixel contributes to the score of a class."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from tigranet.architecture import D
from tigranet.canonical_rotation import canonical_rotation, rotate_back
from tigranet.evaluation.canonical_logits import double_head
from tigranet.graph_layer import Maps
from tigranet.graphs.coarsening import Coarsening
from tigranet.graphs.grid import GridLaplacian
from tigranet.layers.standardise import Standardise
from tigranet.model import TIGraNet
from tigranet.polynomials import chebyshev


class Evidence(NamedTuple):
    """The evidence for one class per image."""

    maps: Float[Tensor, "batch height width"]
    """Evidence of each pixel: positive for the class, negative against it."""
    scores: Float[Tensor, " batch"]
    """What the maps explain: the logit of the class minus the mean of all logits. In double precision on the CPU, as
    the constants."""
    constants: Float[Tensor, " batch"]
    """The part b of the score that no pixel contributes to. A map and its constant sum to the score."""
    classes: Int[Tensor, " batch"]
    """The classes."""
    logits: Float[Tensor, "batch classes"]
    """The logits, in double precision on the CPU, see :func:`~tigranet.evaluation.canonical_logits.double_head`."""


def evidence_maps(
    net: TIGraNet, images: Float[Tensor, "batch maps height width"], classes: Int[Tensor, " batch"] | None = None
) -> Evidence:
    r"""Split the score of a class into contributions of the pixels. The split is exact.

    The features of the network are means over the nodes n of its last maps. With :math:`t_{i,k} = T_k(L - I)
    \tilde z_i`, see :class:`~tigranet.layers.Statistics`,

    .. math:: \mu_{i,k} = \tfrac1N \sum_n |t_{i,k}(n)|, \qquad
        \sigma^2_{i,k} = \tfrac1N \sum_n |t_{i,k}(n)| \left(|t_{i,k}(n)| - \mu_{i,k}\right),

    where the second equation is the variance, written such that a node with t = 0 contributes nothing. The layers after
    the features are linear, with ReLU between them. Near the features :math:`\phi` of the image they are therefore an
    affine function, and the score s of class c, its logit minus the mean of all logits, is

    .. math:: s = b + \sum_f g_f\, (\phi_f - m_f), \qquad g = \partial s / \partial \phi,

    with the mean features m of the training images, which the network stores to standardise features (m = 0 for a
    network that does not). Hence :math:`s = b + \sum_n e(n)` with the evidence

    .. math:: e(n) = \tfrac1N \Big[ \sum_{i,k} |t_{i,k}(n)| \left( g^\mu_{i,k}
        + g^\sigma_{i,k} (|t_{i,k}(n)| - \mu_{i,k}) \right) - \sum_f g_f m_f \Big] .

    It says how the surroundings of a node speak for the class, compared with the average of the training images, whose
    score is b. A constant that is added to all logits changes no probability, and no score.

    The evidence of a coarse pixel is
    distributed over the pixels that it was computed from, with the weights of the coarsening, and the evidence of a
    pixel of the margin goes to the nearest border pixel. Both keep the sum.

    The evidence at a pixel is that of its neighbourhood: the filters of the network reach beyond the pixel.

    The maps rotate with the image, exactly for quarter turns: images are computed in their canonical rotation, and
    the maps are rotated back.

    Args:
        net: The network, in evaluation mode. Its weights are not changed.
        images: The images.
        classes: The class to explain of each image. None explains the class with the highest logit.

    Returns:
        The evidence maps, in the size of the images, and what they sum to.

    Raises:
        ValueError: If the shape of ``images`` or of ``classes`` does not fit, if a class does not exist, or if the
            network is in training mode.
    """
    if net.training:
        raise ValueError("expected a network in evaluation mode to explain its answers: call net.eval() first")
    with torch.inference_mode(False), torch.no_grad():
        # Copies, because tensors that were made in inference mode have no gradients.
        canonical, quarter_turns = canonical_rotation(images.clone())
        classes = None if classes is None else classes.clone()
        last, coarsenings = _last_maps(net, canonical)
        features = net.statistics(last.z, last.laplacian, last.active)
        logits, scores, gradient, classes = _score_gradient(net, features, classes)
        nodes = _node_evidence(net, last, gradient)
        for coarsening, fine in reversed(coarsenings):
            nodes = _transposed(coarsening, nodes, fine)
        size = tuple(side + 2 * net.margin for side in canonical.shape[2:])
        maps = _add_margin_to_border(nodes.unflatten(-1, size), net.margin)
        constants = scores - maps.cpu().double().sum((1, 2))
        rotated = torch.stack(rotate_back(maps[:, None], quarter_turns)).squeeze(1) if len(maps) else maps
        return Evidence(rotated, scores, constants, classes, logits)


def _last_maps(net: TIGraNet, images: Tensor) -> tuple[Maps, list[tuple[Coarsening, int]]]:
    """Return the maps that the statistics are computed from, and each coarsening with its number of fine nodes."""
    coarsenings = []
    fine: GridLaplacian | None = None  # the first layer is a convolution, so the second has a fine grid
    for maps in net.maps(images):
        if isinstance(maps.layer, D):
            assert fine is not None
            coarsenings.append((fine.coarsening, fine.num_nodes))
        assert isinstance(maps.laplacian, GridLaplacian)
        fine, last = maps.laplacian, maps
    return last, coarsenings


def _score_gradient(
    net: TIGraNet, features: Tensor, classes: Tensor | None
) -> tuple[Tensor, Tensor, Float[Tensor, "batch maps orders 2"], Tensor]:
    """Return the logits, the scores, their derivatives with respect to the features, and the classes."""
    with torch.enable_grad():
        phi = features.cpu().double().requires_grad_()
        logits = double_head(net)(phi)
        if classes is None:
            classes = logits.argmax(1)
        if classes.shape != logits.shape[:1] or not ((classes >= 0) & (classes < net.num_classes)).all():
            raise ValueError(
                f"expected one class from 0 to {net.num_classes - 1} for each of {len(logits)} images, "
                f"got classes {classes.tolist()}"
            )
        classes = classes.cpu()
        scores = logits.gather(1, classes[:, None]).squeeze(1) - logits.mean(1)
        (gradient,) = torch.autograd.grad(scores.sum(), phi)
    orders = net.statistics.order + 1
    gradient = gradient.to(features).unflatten(1, (-1, orders, 2))
    return logits.detach(), scores.detach(), gradient, classes


def _node_evidence(
    net: TIGraNet, last: Maps, gradient: Float[Tensor, "batch maps orders 2"]
) -> Float[Tensor, "batch nodes"]:
    """Return the evidence e(n) of the nodes of the last maps."""
    z = last.z if last.active is None else last.z * last.active
    evidence = z.new_zeros(z.shape[0], z.shape[2])
    for order, t in enumerate(chebyshev(z, last.laplacian, net.statistics.order)):
        of_mean, of_variance = gradient[:, :, order, :, None].unbind(2)
        magnitude = t.abs()
        deviation = magnitude - magnitude.mean(-1, keepdim=True)
        evidence += (magnitude * (of_mean + of_variance * deviation)).sum(1)
    if isinstance(net.standardise, Standardise):
        evidence -= (gradient.flatten(1) * net.standardise.mean).sum(1, keepdim=True)
    return evidence / z.shape[2]


def _transposed(
    coarsening: Coarsening, evidence: Float[Tensor, "batch coarse"], fine: int
) -> Float[Tensor, "batch fine"]:
    """Apply the transposed matrix of a coarsening. Its rows sum to 1, so the sum of the evidence stays the same."""
    with torch.enable_grad():
        y = evidence.new_zeros(len(evidence), 1, fine, requires_grad=True)
        (result,) = torch.autograd.grad(coarsening(y), y, evidence[:, None])
    return result.squeeze(1)


def _add_margin_to_border(
    evidence: Float[Tensor, "batch outer_height outer_width"], margin: int
) -> Float[Tensor, "batch height width"]:
    """Remove a margin, and add the evidence of each of its pixels to the nearest border pixel."""
    if not margin:
        return evidence
    with torch.enable_grad():
        height, width = (side - 2 * margin for side in evidence.shape[1:])
        y = evidence.new_zeros(len(evidence), 1, height, width, requires_grad=True)
        (result,) = torch.autograd.grad(F.pad(y, (margin,) * 4, mode="replicate"), y, evidence[:, None])
    return result.squeeze(1)
