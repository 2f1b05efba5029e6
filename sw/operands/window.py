"""The geometry of a convolution, and images that were unfolded for one."""

from dataclasses import dataclass

import scipy.sparse as sp

__all__ = ["Unfolded", "Window"]


@dataclass(frozen=True, kw_only=True)
class Window:
    """A convolution's geometry. image: channels, height, width. kernel: height, width. The others hold for both directions."""

    image: tuple[int, int, int]
    kernel: tuple[int, int]
    stride: int = 1
    padding: int = 0
    dilation: int = 1

    @property
    def output(self) -> tuple[int, int]:
        """Height and width of the output; not above 0 where the kernel is larger than the padded image."""
        height, width = (
            (size + 2 * self.padding - self.dilation * (side - 1) - 1) // self.stride + 1
            for size, side in zip(self.image[1:], self.kernel, strict=True)
        )
        return height, width


@dataclass(frozen=True, kw_only=True, eq=False)
class Unfolded:
    """What an operand was unfolded from. images: (N C) x (H W)."""

    window: Window
    images: sp.csr_array
