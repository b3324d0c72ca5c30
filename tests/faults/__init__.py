"""Seeded faults: each breaks one formula, loop or boundary, and the tests it names must catch it."""

from tests.faults import couplings, descent, estimators, laws, sums

FAULTS = [*laws.FAULTS, *sums.FAULTS, *couplings.FAULTS, *descent.FAULTS, *estimators.FAULTS]
