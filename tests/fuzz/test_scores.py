"""Fuzzed scores and pictures.

python -m pytest tests/fuzz                    100 calls, beside the fits
python -m pytest tests/fuzz -m nightly         4,000 calls
python -m tests.fuzz.test_scores 1000 2000     the calls of these seeds, with one line for each failure
"""

import sys

import matplotlib as mpl
import pytest

from tests.fuzz.scores import call_failure

_TOGETHER = 50


def _failures(seeds):
    mpl.use("agg")
    for seed in seeds:
        why = call_failure(seed)
        if why:
            yield f"seed {seed}: {why}"


@pytest.mark.parametrize("first", range(0, 100, _TOGETHER))
def test_scores_and_pictures_are_right_or_refused(first):
    assert not list(_failures(range(first, first + _TOGETHER)))


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(0, 4000, 200))
def test_many_scores_and_pictures_are_right_or_refused(first):
    assert not list(_failures(range(first, first + 200)))


if __name__ == "__main__":
    for line in _failures(range(int(sys.argv[1]), int(sys.argv[2]))):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
