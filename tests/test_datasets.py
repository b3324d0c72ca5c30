import gzip

import numpy as np
import pytest

import graphcouple as gc

CODES = {"u1": 0x08, "i1": 0x09, ">i2": 0x0B, ">i4": 0x0C, ">f4": 0x0D, ">f8": 0x0E}


def _idx(array, code):
    header = bytes([0, 0, CODES[code], array.ndim]) + np.array(array.shape, ">i4").tobytes()
    return header + array.astype(code).tobytes()


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("zipped", [False, True])
def test_idx_files_are_read_as_written(tmp_path, rng, code, zipped):
    images = rng.integers(0, 100, size=(5, 4, 3))
    data = _idx(images, code)
    path = tmp_path / "images"
    path.write_bytes(gzip.compress(data) if zipped else data)
    found = gc.datasets.read_idx(path)
    np.testing.assert_array_equal(found, images)
    assert found.dtype == np.dtype(code).newbyteorder("=")
    found[0] = 0


def test_damaged_idx_files_are_refused(tmp_path):
    whole = _idx(np.arange(20), "u1")
    path = tmp_path / "labels"
    for data, message in [
        (whole[:-3], "25 bytes, but its header announces 28"),
        (whole + b"x", "29 bytes"),
        (whole[:6], "no IDX file"),
        (b"", "missing"),
        (b"PK\x03\x04 and more", "no IDX file"),
        (gzip.compress(whole)[:-9], "damaged"),
        (gzip.compress(whole)[:12] + b"\xff" + gzip.compress(whole)[13:], "damaged"),
    ]:
        path.write_bytes(data)
        with pytest.raises(ValueError, match=message):
            gc.datasets.read_idx(path)
    with pytest.raises(FileNotFoundError):
        gc.datasets.read_idx(tmp_path / "none")
