"""Fuzzed commands.

python -m pytest tests/fuzz                    75 commands, beside the fits
python -m pytest tests/fuzz -m nightly         4,000 commands
python -m tests.fuzz.test_commands 1000 2000   the commands of these seeds, with one line for each failure
"""

import sys
import tempfile
from pathlib import Path

import pytest

from tests.fuzz.commands import command_failure

_TOGETHER = 25


def _failures(seeds):
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            why = command_failure(seed, Path(folder))
        if why:
            yield f"seed {seed}: {why}"


@pytest.mark.parametrize("first", range(0, 75, _TOGETHER))
def test_commands_end_well_or_say_why(first):
    assert not list(_failures(range(first, first + _TOGETHER)))


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(0, 4000, 200))
def test_many_commands_end_well_or_say_why(first):
    assert not list(_failures(range(first, first + 200)))


if __name__ == "__main__":
    for line in _failures(range(int(sys.argv[1]), int(sys.argv[2]))):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
