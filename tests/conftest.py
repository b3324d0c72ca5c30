import sys

import numpy as np
import pytest

import graphcouple as gc
from graphcouple import cli


@pytest.fixture(scope="session")
def digits():
    return gc.datasets.load("digits")


@pytest.fixture(scope="session")
def iris():
    return gc.datasets.load("iris")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def run(capfd, monkeypatch):
    """Run the command in this process; return its status, standard output and standard error."""

    def command(*arguments):
        monkeypatch.setattr(sys, "argv", ["graphcouple", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        out, err = capfd.readouterr()
        return stopped.value.code, out, err

    return command
