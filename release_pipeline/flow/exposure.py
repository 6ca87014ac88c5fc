"""What the same people were exposed to, person by person, and whether two releases differ by too few of them. Confidential.

People are keyed hashes in the vault (HMAC-SHA256, cut to 128 bits): those of every release that was charged. What is told outside
is the worst case, which the ledger has from declared facts alone: as if the same person had been in every release.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from release_pipeline.flow.site import Site
from release_pipeline.policy.loss import Account
from release_pipeline.store.exposed import open_exposed
from release_pipeline.store.ledger import list_charges


def person_key(site: Site, population: str) -> bytes:
    """The key of the hashes of a population's persons."""
    return bytes.fromhex(site.keyed_hash(f"the persons of {population}".encode()))


@dataclass(frozen=True, slots=True)
class Exposure:
    """How many people of a population there are, by what they were exposed to in the cap's unit (None is infinity)."""

    people: Mapping[int | None, int]

    @property
    def in_order(self) -> list[tuple[int | None, int]]:
        """Amounts and how many people, the least first."""
        return sorted(self.people.items(), key=lambda item: (item[0] is None, item[0] or 0))

    @property
    def worst(self) -> int | None:
        """The most that one person was exposed to."""
        return None if None in self.people else max((amount or 0 for amount in self.people), default=0)


def read_exposure(site: Site, account: Account) -> Exposure:
    """Person by person, exactly: the sum over the charged releases that the person is in. Of policies with a person column."""
    with site.open_registry(read_only=True) as registry:
        charges = {str(charge.id): charge for charge in list_charges(registry, account.population)}
    people: Counter[int | None] = Counter()
    with open_exposed(site.vault, account.population) as exposed:
        for releases, count in exposed.count_people():
            people[account.sum_of(charges[release].loss for release in releases if release in charges)] += count
    return Exposure(people)
