"""Images unfolded for a convolution: against windows cut out of the images one by one, and names that are none."""

import numpy as np
import pytest
import scipy.sparse as sp

from sw.golden.convolution import direct_convolution
from sw.operands import OperandError, load

GEOMETRIES = [
    ((3, 6, 7), (3, 2), {}),
    ((2, 5, 4), (2, 3), {"padding": 1}),
    ((1, 9, 8), (3, 3), {"stride": 2, "padding": 2, "dilation": 2}),
    ((4, 3, 3), (1, 1), {"stride": 3}),
    ((2, 1, 6), (1, 6), {"padding": 4, "stride": 4}),
]


def windows(images, image, kernel, stride=1, padding=0, dilation=1):
    """Columns of the unfolded matrix, one place of the output after the other."""
    planes = np.pad(images.reshape(-1, *image), ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    found = []
    for one in planes:
        for y in range(0, one.shape[1] - dilation * (kernel[0] - 1), stride):
            for x in range(0, one.shape[2] - dilation * (kernel[1] - 1), stride):
                rows, columns = (
                    slice(at, at + dilation * (side - 1) + 1, dilation) for at, side in zip((y, x), kernel, strict=True)
                )
                found.append(one[:, rows, columns].ravel())
    return np.array(found).T


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize(("image", "kernel", "options"), GEOMETRIES)
def test_unfolding_and_convolution(image, kernel, options, batch, tmp_path):
    rng = np.random.default_rng(4)
    area = image[1] * image[2]
    images = np.where(rng.random((batch * image[0], area)) < 0.6, rng.integers(-9, 9, (batch * image[0], area)), 0)
    sp.save_npz(tmp_path / "x.npz", sp.csr_array(images))
    # The same entries in another shape are the same images.
    sp.save_npz(tmp_path / "y.npz", sp.csr_array(images.reshape(batch, -1)))
    words = "".join(f"{name}={size}:" for name, size in options.items())
    name = f"im2col:{'x'.join(map(str, image))}:{'x'.join(map(str, kernel))}:{words}{tmp_path}"
    wanted = windows(images, image, kernel, **options)
    unfolded = load(f"{name}/x.npz")
    assert np.array_equal(unfolded.matrix.toarray(), wanted)
    assert np.array_equal(load(f"{name}/y.npz").matrix.toarray(), wanted)
    assert unfolded.unfolded.images.shape == images.shape and unfolded.name == "im2col-x"

    weights = rng.integers(-9, 9, (5, len(wanted)))
    geometry = {"stride": 1, "padding": 0, "dilation": 1} | options
    found = direct_convolution(image, kernel, **geometry)(sp.csr_array(weights), sp.csr_array(images))
    assert np.array_equal(found.toarray(), weights @ wanted) and found.has_sorted_indices


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("im2col:3x4:3x3:dense:3:16", "CxHxW '3x4': must be 3 whole numbers from 1 to 1048576, as in im2col:CxHxW:"),
        ("im2col:3x4x4:3:dense:3:16", "KHxKW '3': must be 2 whole numbers"),
        ("im2col:3x4x0:3x3:dense:3:16", "CxHxW '3x4x0'"),
        ("im2col:3x4x4:3x3:stride=0:dense:3:16", "stride '0': must be a whole number from 1 to 1048576"),
        (
            "im2col:3x4x4:3x3:paddin=1:dense:3:16",
            "paddin: must be one of stride, padding, dilation (did you mean padding?)",
        ),
        ("im2col:3x4x4:3x3", "the images are missing: must be im2col:CxHxW"),
        ("im2col:3x4x4:3x3:padding=1", "the images are missing"),
        ("im2col:3x4x4:5x3:dense:3:16", "the kernel covers 5 x 3 of 4 x 4: must be at most the image and its padding"),
        ("im2col:3x4x4:3x3:dilation=2:dense:3:16", "the kernel covers 5 x 5 of 4 x 4"),
        (
            "im2col:3x4x4:3x3:dense:3:17",
            "the images are 3 x 17: must have a multiple of 48 entries, 3 x 4 x 4 for each",
        ),
    ],
)
def test_names_that_are_none(name, message):
    with pytest.raises(OperandError) as refused:
        load(name)
    assert str(refused.value).startswith(f"{name}: ") and message in str(refused.value)


def test_errors_of_the_images_are_theirs(tmp_path):
    with pytest.raises(OperandError, match=r"x\.npz"):
        load(f"im2col:3x4x4:3x3:{tmp_path}/x.npz")
    with pytest.raises(OperandError, match="not an operand"):
        load("im2col:3x4x4:3x3:dens:3:16")
