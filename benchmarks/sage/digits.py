"""A small convolutional network trained on scikit-learn's digits, pruned as in MINT's section VII.D: its layers as operands.

Five layers: three convolutions of 3 x 3 and two fully connected ones, each but the last with ReLU. Training is stochastic
gradient descent with momentum, here and not by a library, since nothing of it is asked for but trained weights.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sw.formats.canonical import canonical
from sw.operands import load
from sw.sage.workload import Operand, Workload, counted, matrix_operand

__all__ = ["LAYERS", "PRUNED", "Network", "Operands", "accuracy", "operands", "pruned", "trained"]

Floats = NDArray[np.float32]
Weights = list[Floats]

#: Images that go through the network at a time.
BATCH = 64
#: Images that are trained on; the others are tested with.
TRAINED = 1440
EPOCHS, RATE, MOMENTUM, DECAY = 20, 0.02, 0.9, 1e-3
#: Share of the weights that goes, of each layer or of all together.
PRUNED = {"normal": 0.0, "50 % a layer": 0.5, "70 % global": 0.7}


@dataclass(frozen=True)
class Layer:
    """``channels`` of ``side`` x ``side`` come in. ``window``: side of the filter, 0 of a fully connected layer."""

    name: str
    channels: int
    side: int
    filters: int
    window: int = 0
    stride: int = 1

    @property
    def inputs(self) -> int:
        """Weights of a filter."""
        return self.channels * (self.window or self.side) ** 2

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the weights, as other libraries keep them."""
        return (self.filters, self.channels, self.window, self.window) if self.window else (self.filters, self.inputs)

    def seen(self, images: Floats) -> Floats:
        """A row for each place of the output: what a filter sees there."""
        if not self.window:
            return images.reshape(len(images), -1)
        padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
        views = np.lib.stride_tricks.sliding_window_view(padded, (self.window, self.window), axis=(2, 3))
        views = views[:, :, :: self.stride, :: self.stride].transpose(0, 2, 3, 1, 4, 5)
        return np.ascontiguousarray(views).reshape(-1, self.inputs)

    def images(self, rows: Floats, count: int) -> Floats:
        """The rows of the layer's product as images."""
        side = self.side // self.stride if self.window else 1
        return np.ascontiguousarray(rows.reshape(count, side, side, self.filters).transpose(0, 3, 1, 2))

    def rows(self, images: Floats) -> Floats:
        """What :meth:`images` was given."""
        return images.transpose(0, 2, 3, 1).reshape(-1, self.filters)

    def unseen(self, rows: Floats, count: int) -> Floats:
        """Sums over the rows that saw a place: the gradient of :meth:`seen`."""
        if not self.window:
            return rows.reshape(count, self.channels, self.side, self.side)
        out = self.side // self.stride
        parts = rows.reshape(count, out, out, self.channels, self.window, self.window)
        padded = np.zeros((count, self.channels, self.side + 2, self.side + 2), np.float32)
        for y, x in np.ndindex(self.window, self.window):
            places = (slice(each, each + out * self.stride, self.stride) for each in (y, x))
            padded[(slice(None), slice(None), *places)] += parts[..., y, x].transpose(0, 3, 1, 2)
        return padded[:, :, 1:-1, 1:-1]


LAYERS = (
    Layer("conv1", 1, 8, 16, window=3),
    Layer("conv2", 16, 8, 32, window=3, stride=2),
    Layer("conv3", 32, 4, 64, window=3),
    Layer("full4", 64, 4, 256),
    Layer("full5", 256, 1, 10),
)


@dataclass(frozen=True)
class Network:
    """Weights (inputs x filters) and biases of the layers."""

    weights: tuple[Floats, ...]
    biases: tuple[Floats, ...]

    def activations(self, images: Floats) -> list[Floats]:
        """What goes into each layer, and what leaves the last one."""
        found = [images]
        for layer, weights, bias in zip(LAYERS, self.weights, self.biases, strict=True):
            sums = layer.images(layer.seen(found[-1]) @ weights + bias, len(images))
            found.append(sums if layer is LAYERS[-1] else np.maximum(sums, 0))
        return found


@cache
def digits() -> tuple[Floats, NDArray[np.int64]]:
    """Images of 8 x 8 with values 0 to 1, and the digits that they show, in an order that mixes who wrote them."""
    from sklearn.datasets import load_digits

    found = load_digits()
    order = np.random.default_rng(0).permutation(len(found.images))
    return (found.images[order, None] / 16).astype(np.float32), found.target[order].astype(np.int64)


def accuracy(network: Network) -> float:
    """Percent of the images that were not trained on."""
    images, shown = (each[TRAINED:] for each in digits())
    return 100 * float((network.activations(images)[-1].reshape(len(images), -1).argmax(axis=1) == shown).mean())


def _gradients(network: Network, images: Floats, shown: NDArray[np.int64]) -> Iterator[tuple[int, Floats, Floats]]:
    """Of the cross entropy, layer by layer from the last one: its number, of its weights, of its biases."""
    found = network.activations(images)
    scores = found[-1].reshape(len(images), -1)
    chances = np.exp(scores - scores.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    chances[np.arange(len(images)), shown] -= 1
    error = chances / len(images)
    for number in range(len(LAYERS) - 1, -1, -1):
        layer = LAYERS[number]
        own = layer.seen(found[number]).T @ error, error.sum(axis=0)
        if number:
            before = layer.unseen(error @ network.weights[number].T, len(images)) * (found[number] > 0)
            error = LAYERS[number - 1].rows(before)
        yield number, *own


@cache
def trained(seed: int = 2) -> Network:
    """The network after ``EPOCHS``; the same seed gives the same but for what matrix products of other machines round."""
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    # Products of one thread round in one order, and such small ones are no quicker with more.
    with threadpool_limits(1):
        return _trained(seed)


def _trained(seed: int) -> Network:
    numbers = np.random.default_rng(seed)
    weights = [
        (numbers.standard_normal((each.inputs, each.filters)) * (2 / each.inputs) ** 0.5).astype(np.float32)
        for each in LAYERS
    ]
    network = Network(tuple(weights), tuple(np.zeros(each.filters, np.float32) for each in LAYERS))
    moving = [[np.zeros_like(each) for each in group] for group in (network.weights, network.biases)]
    images, shown = (each[:TRAINED] for each in digits())
    for epoch in range(EPOCHS):
        rate = RATE * (1 - epoch / EPOCHS)
        for batch in np.split(numbers.permutation(TRAINED), range(BATCH, TRAINED, BATCH)):
            for number, *changes in _gradients(network, images[batch], shown[batch]):
                own = (network.weights[number], network.biases[number])
                changes[0] += DECAY * own[0]
                for values, move, change in zip(own, (moving[0][number], moving[1][number]), changes, strict=True):
                    move *= MOMENTUM
                    move -= rate * change
                    values += move
    return network


def pruned(network: Network, how: str) -> Network:
    """Without the weights of least size: a share of each layer's, or of those of all layers together."""
    share = PRUNED[how]
    sizes = [np.abs(each) for each in network.weights]
    limits = [np.quantile(each, share) for each in sizes]
    if how == "70 % global":
        limits = [np.quantile(np.concatenate([each.ravel() for each in sizes]), share)] * len(LAYERS)
    kept = (np.where(size >= limit, each, 0) for each, size, limit in zip(network.weights, sizes, limits, strict=True))
    return replace(network, weights=tuple(kept))


@dataclass(frozen=True)
class Operands:
    """A layer's product: a row of ``a`` is what a filter sees, ``b`` has the filters. ``images`` come in, ``outputs`` leave."""

    layer: Layer
    a: Any
    b: Any
    images: Floats
    outputs: Floats

    def workload(self) -> Workload:
        """Memory keeps the activations themselves, as in figure 14. O is as sparse as the activations that it becomes."""
        product = counted("spgemm", self.a, self.b)
        kept = self.images.transpose(0, 2, 3, 1).reshape(-1, self.layer.channels)
        if not self.layer.window:
            kept = self.images.reshape(len(self.images), -1)
        return replace(product, a=_matrix(kept), o=_matrix(self.layer.rows(self.outputs)))


def operands(network: Network, folder: Path) -> Iterator[Operands]:
    """Each layer times a batch of images that were not trained on, by way of files that every command reads."""
    from safetensors.numpy import save_file

    model = folder / "digits.safetensors"
    own = zip(LAYERS, network.weights, strict=True)
    save_file({f"{layer.name}.weight": np.ascontiguousarray(each.T).reshape(layer.shape) for layer, each in own}, model)
    activations = network.activations(digits()[0][TRAINED : TRAINED + BATCH])
    for layer, images, outputs in zip(LAYERS, activations, activations[1:], strict=False):
        file = folder / f"{layer.name}.npz"
        sp.save_npz(file, sp.csr_array(images.reshape(BATCH, -1)))
        sizes = f"{layer.channels}x{layer.side}x{layer.side}:{layer.window}x{layer.window}"
        seen = load(f"im2col:{sizes}:padding=1:stride={layer.stride}:{file}" if layer.window else str(file)).matrix
        weights = load(f"{model}:{layer.name}").matrix
        yield Operands(layer, canonical(seen.T if layer.window else seen), canonical(weights.T), images, outputs)


def _matrix(values: Floats) -> Operand:
    return matrix_operand(sp.csr_array(values))
