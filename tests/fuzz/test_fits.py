"""Fuzzed fits: some in every run of the tests, many by night.

python -m pytest tests/fuzz                   120 cases
python -m pytest tests/fuzz -m nightly        20,000 cases
python -m tests.fuzz.test_fits 1000 2000      the cases of these seeds, with one line for each failure
"""

import sys
from collections import Counter

import pytest

from tests.fuzz.cases import case
from tests.fuzz.check import failure

_TOGETHER = 20
_ENDED: Counter[tuple[str, bool]] = Counter()


def _failures(seeds):
    made = (case(seed) for seed in seeds)
    return [f"seed {one.seed}: {one.estimator!r} of {one.what}: {why}" for one in made if (why := failure(one, _ENDED))]


@pytest.mark.parametrize("first", range(0, 120, _TOGETHER))
def test_fits_are_right_or_refused(first):
    assert not _failures(range(first, first + _TOGETHER))


def test_most_cases_are_fitted():
    """A library that refused everything would have no failures. Of random pairs of laws a quarter is feasible.

    Fewer than three cases of an estimator say nothing.
    """
    # Run by itself, this test has seen no case yet.
    if not _ENDED:
        _failures(range(120))
    counts = {name: (_ENDED[name, True], _ENDED[name, False]) for name in {name for name, _ in _ENDED}}
    shares = {name: fitted / (fitted + refused) for name, (fitted, refused) in counts.items() if fitted + refused > 2}
    assert min(shares.values()) >= 0.2, shares


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(0, 20_000, 500))
def test_many_fits_are_right_or_refused(first):
    assert not _failures(range(first, first + 500))


if __name__ == "__main__":
    for seed in range(int(sys.argv[1]), int(sys.argv[2])):
        for line in _failures([seed]):
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
