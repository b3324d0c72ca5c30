"""The seeded faults of `tests.faults` still fit the code, so that a run of them can begin."""

from pathlib import Path

import graphcouple
from tests.faults import FAULTS

PACKAGE = Path(graphcouple.__file__).parent


def test_every_fault_fits_the_code():
    text = {fault.file: (PACKAGE / fault.file).read_text() for fault in FAULTS}
    assert [fault.name for fault in FAULTS if fault.before not in text[fault.file]] == []


def test_every_fault_names_tests_that_exist():
    named = {name for fault in FAULTS for name in fault.tests.split()}
    assert [name for name in sorted(named) if not Path(__file__).with_name(f"{name}.py").exists()] == []
