"""Files in the IDX format of MNIST and Fashion-MNIST."""

from __future__ import annotations

import gzip
import math
import re
import zlib
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_IDX_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read_idx(path: str | PathLike[str]) -> NDArray[Any]:
    """Return the array of an IDX file, the format of MNIST and Fashion-MNIST.

    Parameters
    ----------
    path : path
        Gzipped or not.

    Returns
    -------
    ndarray
        With the file's shape and type: labels of shape (n,), images of shape (n, height, width).

    Raises
    ------
    OSError
        When the file cannot be read.
    ValueError
        When it is not an IDX file, or ends too early.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import graphcouple as gc
    >>> path = Path(tempfile.mkdtemp()) / "labels-idx1-ubyte"
    >>> _ = path.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 1]))
    >>> gc.datasets.read_idx(path)
    array([7, 2, 1], dtype=uint8)
    """
    data = Path(path).read_bytes()
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"{path} is a damaged gzip file ({error}).") from None
    is_idx = len(data) >= 4 and data[:2] == b"\x00\x00" and data[2] in _IDX_TYPES and data[3] > 0
    if not is_idx or len(data) < 4 + 4 * data[3]:
        raise ValueError(f"{path} is not an IDX file: its first bytes are {data[:4].hex(' ') or 'missing'}.")
    dtype, start = np.dtype(_IDX_TYPES[data[2]]), 4 + 4 * data[3]
    shape = tuple(np.frombuffer(data[4:start], ">i4").tolist())
    n_bytes = start + math.prod(shape) * dtype.itemsize
    if min(shape) < 0 or len(data) != n_bytes:
        raise ValueError(f"{path} holds {len(data)} bytes, but its header announces {n_bytes}; fetch it again.")
    return np.frombuffer(data, dtype, offset=start).reshape(shape).astype(dtype.newbyteorder("="))


def read_idx_pairs(path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the images, one in each row, and the labels, from a file of images or from all such files of a folder.

    The file of labels lies beside the file of images, with "labels" for "images" and "idx1" for "idx3" in its name.
    Training images come first.
    """
    files = [path]
    if path.is_dir():
        files = sorted(path.glob("*images*idx3*"), key=lambda file: ("train" not in file.name, file.name))
        # A file that exists both gzipped and not is read once.
        files = list({file.name.removesuffix(".gz"): file for file in reversed(files)}.values())[::-1]
    if not files:
        raise FileNotFoundError(f"{path} holds no IDX files of images, such as train-images-idx3-ubyte.gz")
    images, labels = [], []
    for file in files:
        partner = file.with_name(re.sub("images(.)idx3", r"labels\1idx1", file.name))
        if not partner.is_file():
            is_gzip = partner.suffix == ".gz"
            partner = partner.with_name(partner.name.removesuffix(".gz") if is_gzip else f"{partner.name}.gz")
        if partner == file or not partner.is_file():
            raise FileNotFoundError(f"no labels beside {file}: {partner.name} is missing")
        images.append(read_idx(file))
        labels.append(read_idx(partner).ravel())
        if len(images[-1]) != len(labels[-1]):
            raise ValueError(f"{file} holds {len(images[-1])} images, but {partner.name} {len(labels[-1])} labels.")
    return np.concatenate([part.reshape(len(part), -1) for part in images]), np.concatenate(labels)
