"""The list of planted faults can be planted: `python -m tests.faults` does it, which takes hours."""

from __future__ import annotations

from collections import Counter

from tests.faults.planted import ROOT, read_faults

FAULTS = read_faults()
FEWEST = 150


def test_every_text_stands_in_its_file_exactly_once() -> None:
    """Where it has moved or changed, the list is mended: a fault is never taken out because its code has changed."""
    assert not [f"{fault.name}: {fault.find}" for fault in FAULTS if fault.count_places() != 1]


def test_every_fault_changes_something_and_has_a_name_of_its_own() -> None:
    """Results are kept by name."""
    assert len(FAULTS) >= FEWEST
    assert not [fault.name for fault in FAULTS if fault.find == fault.put or not fault.breaks]
    assert not [name for name, count in Counter(fault.name for fault in FAULTS).items() if count > 1]


def test_every_file_of_tests_is_there() -> None:
    """Those that should see a fault."""
    assert not {tests for fault in FAULTS for tests in fault.tests if not (ROOT / "tests" / tests).is_file()}
