r"""Oriented fields: every feature is a function of position and of one of N orientations.

A rotation of the image by a multiple of :math:`2 \pi / N` moves each map and permutes the orientations. A filter is a
sum of circular harmonics on Gaussian rings,

.. math:: \psi_{r,m}(x) = e^{-(|x| - r)^2 / 2 \sigma^2} e^{i m \arg x},

which a multiplication by :math:`e^{-i m \theta}` rotates exactly, for any angle. The filter from orientation i to
orientation j depends on :math:`i - j` and is rotated by the angle of j. The non-linearity acts on each orientation
alone. At the end the maximum over the orientations and the mean over the pixels are invariant. Quarter turns are exact
on the pixel grid if N is a multiple of 4; other angles as far as the filters are smooth.

Channels are ordered (orientation, channel): channel ``j * channels + c`` is orientation j of feature c.
"""

import math
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

RING_WIDTH, LAST_RING_WIDTH = 0.6, 0.45
"""Standard deviations of the rings in pixels. The last ring is narrower, because the square window cuts it off."""
MAX_FREQUENCY = 4
"""Largest angular frequency m of an inner ring; the last ring may have one more."""


def circular_harmonics(size: int, orientations: int) -> Tensor:
    """Return the filters of a basis, rotated to each orientation.

    Args:
        size: Side length of the filters in pixels, odd.
        orientations: Number of orientations.

    Returns:
        Filters (orientations, basis, size, size). Ring r has the frequencies 0 .. r + 1.
    """
    centre = (size - 1) // 2
    offset = torch.arange(-centre, centre + 1, dtype=torch.float64)
    x, y = offset[None, :].expand(size, size), -offset[:, None].expand(size, size)
    radius, angle = torch.hypot(x, y), torch.atan2(y, x)
    rotated = []
    for orientation in range(orientations):
        phase = angle - 2 * math.pi * orientation / orientations
        filters = []
        for ring in range(centre + 1):
            is_last = ring == centre and centre > 0
            width = LAST_RING_WIDTH if is_last else RING_WIDTH
            profile = torch.exp(-((radius - ring) ** 2) / (2 * width**2)) * (radius <= centre + 0.75)
            filters.append(profile / profile.norm())
            profile = profile * (radius > 0)  # the angle of the centre is not defined
            for frequency in range(1, min(ring + 1, MAX_FREQUENCY + is_last) + 1 if ring else 1):
                for wave in (torch.cos(frequency * phase), torch.sin(frequency * phase)):
                    filters.append(profile * wave * (math.sqrt(2) / profile.norm()))
        rotated.append(torch.stack(filters))
    return torch.stack(rotated).float()


class FieldConv(nn.Module):
    """Convolution of fields with learned combinations of circular harmonics.

    Args:
        in_channels: Number of input features.
        out_channels: Number of output features.
        orientations: Number of orientations N.
        size: Side length of the filters.
        lift: Whether the input is an image, which has no orientations.
    """

    def __init__(self, in_channels: int, out_channels: int, orientations: int, size: int, lift: bool = False) -> None:
        super().__init__()
        self.orientations, self.size, self.lift = orientations, size, lift
        basis = circular_harmonics(size, orientations).flatten(2)
        inputs = 1 if lift else orientations
        scale = math.sqrt(2 / (in_channels * inputs * basis.shape[1]))
        self.weight = nn.Parameter(scale * torch.randn(out_channels, in_channels, inputs, basis.shape[1]))
        number = torch.arange(orientations)
        self.register_buffer("basis", basis)
        self.register_buffer("difference", (number[None, :] - number[:, None]) % orientations)

    def kernel(self) -> Tensor:
        """Return the filters as the weight of a plain convolution."""
        if self.lift:
            filters = torch.einsum("oab,jbk->joak", self.weight[:, :, 0], self.basis)
        else:
            filters = torch.einsum("oajib,jbk->joiak", self.weight[:, :, self.difference], self.basis)
        return filters.flatten(0, 1).flatten(1, -2).unflatten(-1, (self.size, self.size))

    def forward(self, x: Tensor) -> Tensor:
        """Convolve; pixels outside the image are zero."""
        weight = self.kernel().contiguous(memory_format=torch.channels_last)
        return F.conv2d(x, weight, padding=self.size // 2)


class FieldNorm(nn.Module):
    """Batch normalisation with the same moments for all orientations of a feature."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.channels = channels
        self.norm = nn.BatchNorm1d(channels)

    def forward(self, x: Tensor) -> Tensor:
        """Normalise (batch, orientations * channels, height, width)."""
        last = x.permute(0, 2, 3, 1).contiguous()
        return self.norm(last.view(-1, self.channels)).view_as(last).permute(0, 3, 1, 2)


def coarsen(x: Tensor) -> Tensor:
    """Halve height and width with a symmetric low-pass filter, so that quarter turns stay exact.

    The taps are (1, 3, 3, 1) / 8 for an even length, and (1, 2, 1) / 4 at every second pixel for an odd one. Both are
    repeated means of two neighbours.
    """
    padded = F.pad(x, (1, 1, 1, 1), mode="replicate")
    smooth = F.avg_pool2d(F.avg_pool2d(padded, 2, 1), 2, 1)
    return F.avg_pool2d(smooth, 2, 2) if x.shape[-1] % 2 == 0 else smooth[..., ::2, ::2]


def disc(size: int, softness: float, margin: float, like: Tensor) -> Tensor:
    """Return a window that is 1 inside a disc and falls to 0 over ``softness`` pixels at its border."""
    offset = torch.arange(size, device=like.device, dtype=torch.float32) - (size - 1) / 2
    radius = torch.hypot(offset[:, None], offset[None, :])
    return ((size / 2 + margin - radius) / softness).clamp(0, 1).to(like.dtype)


class Block(nn.Module):
    """Residual block: twice normalisation, ReLU and convolution. The sum is masked by a disc."""

    def __init__(self, channels: int, orientations: int, size: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(FieldNorm(channels) for _ in range(2))
        self.convs = nn.ModuleList(FieldConv(channels, channels, orientations, size) for _ in range(2))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Add the block's output, inside the mask, to its input."""
        y = x
        for norm, conv in zip(self.norms, self.convs, strict=True):
            y = conv(F.relu(norm(y)))
        return x + y * mask


class FieldNet(nn.Module):
    """Levels of residual blocks with coarsening between them, then invariants and a linear classifier.

    Args:
        in_maps: Number of channels of the images.
        num_classes: Number of classes.
        orientations: Number of orientations N.
        widths: Number of features of each level.
        blocks: Number of residual blocks per level.
        size: Side length of the filters.
        stem_size: Side length of the first filters.
        head: Number of invariants.
        dropout: Probability of dropping an invariant.
        softness: Width of the border of the disc window on the images, in pixels.
    """

    def __init__(
        self,
        in_maps: int,
        num_classes: int,
        orientations: int = 8,
        widths: tuple[int, ...] = (12, 24, 48),
        blocks: int = 2,
        size: int = 5,
        stem_size: int = 5,
        head: int = 128,
        dropout: float = 0.3,
        softness: float = 2.0,
    ) -> None:
        super().__init__()
        self.orientations, self.softness = orientations, softness
        self.stem = FieldConv(in_maps, widths[0], orientations, stem_size, lift=True)
        self.widen = nn.ModuleList([nn.Identity(), *(FieldConv(a, b, orientations, 3) for a, b in pairwise(widths))])
        self.levels = nn.ModuleList(
            nn.ModuleList(Block(width, orientations, size) for _ in range(blocks)) for width in widths
        )
        self.last_norm = FieldNorm(widths[-1])
        self.project = FieldConv(widths[-1], head, orientations, 1)
        self.project_norm = FieldNorm(head)
        self.classifier = nn.Sequential(nn.BatchNorm1d(head), nn.Dropout(dropout), nn.Linear(head, num_classes))

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits of images whose mean is about zero."""
        x = images * disc(images.shape[-1], self.softness, 0.0, images)
        x = self.stem(x.contiguous(memory_format=torch.channels_last))
        for number, (widen, level) in enumerate(zip(self.widen, self.levels, strict=True)):
            x = widen(coarsen(x)) if number else x
            mask = disc(x.shape[-1], 1.0, 0.5, x)
            for block in level:
                x = block(x, mask)
        x = self.project_norm(self.project(F.relu(self.last_norm(x))))
        x = F.relu(x.unflatten(1, (self.orientations, -1)).amax(1))
        return self.classifier(((x * mask).sum((2, 3)) / mask.sum()).float())
