"""All that the public is told of a release, as a type: what is no field of it cannot get into the package.

Texts are of the policy or written by us, numbers are declared or counts of released rows. There is
no float: figures that are computed from the data (errors, scales, exact losses) are refused.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from release_pipeline.policy.published import name_data
from release_pipeline.policy.typed import Plain
from release_pipeline.report.card import Card

BLOCKS_FILE = "data.blocks.csv"  # noisy counts of several columns together
SHORT = 10_000  # characters of any one text: no table of people fits


@dataclass(frozen=True, slots=True)
class PackageView:
    """The card of a release, and its files as far as the card does not name them. `hierarchies`:
    files with their rows. `counts`: files with the noisy counts that values were made of.
    `data_files`: the number of files of each format whose rows are in several."""

    card: Card
    hierarchies: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...] = ()
    counts: tuple[str, ...] = ()
    data_files: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        check_public(dataclasses.asdict(self))

    @property
    def together(self) -> bool:
        """Whether several columns were counted together."""
        return BLOCKS_FILE in self.counts

    def name_data(self, form: str) -> list[str]:
        """The files that have the rows in a format."""
        return name_data(form, dict(self.data_files).get(form, 1))


def check_public(value: Plain) -> None:
    """Refuse what is neither a short text, a whole number nor nothing."""
    if isinstance(value, dict):
        for name, part in value.items():
            if name != "is_k_anonymity":  # follows from the method, and is the only one that is true or false
                check_public(part)
    elif isinstance(value, list | tuple):
        for part in value:
            check_public(part)
    elif isinstance(value, str):
        if len(value) > SHORT:
            raise TypeError("a text of this length is not for the public view")
    elif value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise TypeError(f"a {type(value).__name__} is not for the public view")
