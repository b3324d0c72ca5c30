"""Fixtures of all tests and doctests."""

import pytest

from graphcouple.couplings.recipes import COUPLINGS
from graphcouple.initializations import STARTS
from graphcouple.kernels.base import KERNELS
from graphcouple.laws.priors.base import PRIORS
from graphcouple.metrics._evaluate import SCORES
from graphcouple.summation.base import SUMMATIONS


@pytest.fixture(autouse=True)
def registered(request):
    """Remove the names that a doctest registers."""
    registries = [COUPLINGS, KERNELS, PRIORS, SCORES, STARTS, SUMMATIONS]
    before = [registry.names() for registry in registries]
    yield
    if isinstance(request.node, pytest.DoctestItem):
        for registry, names in zip(registries, before, strict=True):
            for name in set(registry.names()) - set(names):
                registry.remove(name)
