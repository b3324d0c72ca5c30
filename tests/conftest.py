import numpy as np
import pytest

import graphcouple as gc


@pytest.fixture(scope="session")
def digits():
    return gc.datasets.load("digits")


@pytest.fixture(scope="session")
def iris():
    return gc.datasets.load("iris")


@pytest.fixture
def rng():
    return np.random.default_rng(0)
