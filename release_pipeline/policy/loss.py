"""What a release may cost at most: a bound from public facts, for each definition and scope. Never an exact loss."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import compress

from release_pipeline.errors import InvalidArgument
from release_pipeline.policy.families import find_family
from release_pipeline.policy.model import Policy
from release_pipeline.policy.populations import Population, Way
from release_pipeline.privacy.amplification import amplified
from release_pipeline.privacy.budget import format_nano
from release_pipeline.privacy.partition import largest_share

LOSSES = ("dp_centroid", "dp_column", "dp_table", "idp_centroid", "idp_column", "idp_table")


@dataclass(frozen=True, slots=True)
class Loss:
    """Nano-epsilon for each definition and scope; None is infinity. `releases`: how many a cap of releases counts."""

    dp_centroid: int | None
    dp_column: int | None
    dp_table: int | None
    idp_centroid: int | None
    idp_column: int | None
    idp_table: int | None
    releases: int = 1

    def of(self, definition: str, scope: str) -> int | None:
        """The bound for one definition and scope."""
        return getattr(self, f"{definition}_{scope}")


def release_loss(policy: Policy, *, records: int) -> Loss:
    """The bound of one release of `policy` with `records` records: the number of records is public.

    A DP release fills both definitions (every eps-DP release is also eps-iDP); an iDP release leaves DP infinite. At scope
    `centroid` of the iDP methods and of dp-mdav the column costs more (methods.md section 2): `wider_bound`. Of one part of
    random parts it is the same, in the largest part. (k,epsilon)-anonymity and k-anonymity bound neither: they do not compose,
    and a cap counts releases.
    """
    nano = policy.epsilon
    if nano is None or not policy.adds_up:
        return Loss(None, None, None, None, None, None)
    column = wider_bound(policy, nano, records=records)
    table = column if policy.covers_table else None
    match policy.definition:
        case "dp":
            return Loss(nano, column, table, nano, column, table)
        case "idp":
            return Loss(None, None, None, nano, column, table)
        case _:
            raise InvalidArgument(f"nothing says how {policy.claim.definition.short} is charged.", where="definition")


def list_losses(
    policy: Policy, releases: Iterable[str], *, charged: Iterable[str], records: int, slots: int | None = None
) -> list[Loss]:
    """What these releases cost one after the other, by their names, when those of `charged` are charged already. Of a series of
    parts a part that is made once more costs the whole loss again. `slots`: how many records its parts are of, where that is
    known; otherwise parts count as equal, and a charge can only be larger."""
    whole, known = release_loss(policy, records=records), set(charged)
    found: list[Loss] = []
    for release in releases:
        is_new_part = policy.publishes_parts and release not in known
        found.append(part_loss(policy, whole, done=len(known), slots=slots) if is_new_part else whole)
        known.add(release)
    return found


def part_loss(policy: Policy, whole: Loss, *, done: int, slots: int | None) -> Loss:
    """What the next part of a series costs after `done` others, `whole` being the loss of one release.

    Nobody is in two parts, so that under replace-one neighbours all of them cost what one costs (parallel composition, PRS20):
    the first part is charged with all of it, and the others with nothing. With amplification the sum after r parts is
    ln(1 + beta (e^eps - 1)), which is eps at r = P (`amplified`); beta is the share of all records that r parts have at the most,
    for parts differ in size by one where P does not divide the number of records, and any of them may come first.
    """
    if policy.protect.amplification is None:
        nothing = Loss(*(None if getattr(whole, name) is None else 0 for name in LOSSES), releases=0)
        return whole if done == 0 else nothing

    def after(nano: int, parts: int) -> int:
        return amplified(nano, share_of_parts(policy, parts, slots)) if parts else 0

    def grown(nano: int | None) -> int | None:
        return None if nano is None else after(nano, done + 1) - after(nano, done)

    return Loss(*(grown(getattr(whole, name)) for name in LOSSES), releases=int(done == 0))


def share_of_parts(policy: Policy, count: int, slots: int | None) -> Fraction:
    """The share of all records that so many parts have at the most; as of equal parts where nobody knows how many records."""
    return Fraction(count, policy.parts) if slots is None else largest_share(slots, policy.parts, count)


def wider_bound(policy: Policy, nano: int, *, records: int) -> int:
    """The public bound on the whole list of a column's values, for a release of `nano`; for dp-mdav on the lists of all columns
    and on which rows share values too, which is all that there is to see where nothing else is released."""
    return find_family(policy.protect).bound_lists(policy, nano, records=records)


def depends_on_records(policy: Policy) -> bool:
    """Whether the bound grows with the number of records."""
    return policy.claim.lists.counts


def sum_series(policy: Policy, losses: Iterable[Loss]) -> int | None:
    """What releases of a policy lose together in its own definition and scope, in nano-epsilon; None is infinity."""
    if not policy.adds_up:
        return None
    parts = [loss.of(policy.definition, policy.protect.scope) for loss in losses]
    return None if None in parts else sum(part or 0 for part in parts)


@dataclass(frozen=True, slots=True)
class Place:
    """What a loss was charged to: a population, and of one whose releases are about disjoint people the cohort."""

    population: str
    cohort: str = ""


@dataclass(frozen=True, slots=True)
class Account:
    """A population's cap beside what is charged to it and to those that its people were in before, in the cap's own definition
    and scope.

    `places`: where each loss of `charged` was charged (default: all to the population itself, one after the other); `ways`: the
    sets of populations that one person can have been in (default: this one). The total is the most over these ways, and of
    cohorts, whose people are disjoint, the most over them: no person is in two (parallel composition).
    """

    population: str
    cap: Population
    charged: tuple[Loss, ...]
    places: tuple[Place, ...] = ()
    ways: tuple[Way, ...] = ()

    @property
    def carries(self) -> tuple[str, ...]:
        """The populations whose charges count here, beside its own."""
        return tuple(sorted(frozenset[str]().union(*self.ways) - {self.population}))

    @property
    def basis(self) -> str:
        """What is added up: the unit and, where people bring charges with them, from where. What was added up otherwise is
        added up anew."""
        if not self.carries:
            return self.unit
        return f"{self.unit}; with {' or '.join(' + '.join(sorted(way - {self.population})) for way in self.ways)}"

    @property
    def unit(self) -> str:
        """What is counted."""
        if self.cap.cap.epsilon is None:
            return "releases"
        return f"epsilon, {'DP' if self.cap.cap.definition == 'dp' else 'iDP'}, {self.cap.cap.scope}"

    @property
    def total(self) -> int | None:
        """What is charged so far, in nano-epsilon or releases; None is infinity."""
        if not self.places and not self.ways:
            return self.sum_of(self.charged)
        return self._spent(deque(self._add_up(), maxlen=1).pop() if self.charged else {})

    def _add_up(self) -> Iterator[dict[str, dict[str, int]] | None]:
        """What each cohort of each population was charged, after each loss; None once that is infinite. One dict, which grows."""
        sums: dict[str, dict[str, int]] | None = {}
        for loss, place in zip(self.charged, self._placed, strict=True):
            amount = self.of(loss)
            if amount is None or sums is None:
                sums = None
            else:
                cohorts = sums.setdefault(place.population, {"": 0})
                cohorts[place.cohort] = cohorts.get(place.cohort, 0) + amount
            yield sums

    def _spent(self, sums: dict[str, dict[str, int]] | None) -> int | None:
        """The most that one person can have been exposed to."""
        if sums is None:
            return None
        return max(sum(_spent_in(sums.get(name, {})) for name in way) for way in self.ways or ({self.population},))

    @property
    def adds_up(self) -> bool:
        """Whether each loss takes all of itself from what is left: none is of a cohort, and nobody came one of several ways."""
        return len(self.ways) <= 1 and not any(place.cohort for place in self.places)

    def only(self, kept: Sequence[bool]) -> Account:
        """The account with some of its losses alone; `kept` has a word for each."""
        return replace(self, charged=tuple(compress(self.charged, kept)), places=tuple(compress(self.places, kept)))

    @property
    def _placed(self) -> tuple[Place, ...]:
        return self.places or (Place(self.population),) * len(self.charged)

    def plus(self, *losses: Loss, cohort: str = "") -> Account:
        """The account when these are charged too, of a cohort where the population has them."""
        if not cohort and not self.places:
            return replace(self, charged=(*self.charged, *losses))
        places = (*self._placed, *(Place(self.population, cohort) for _ in losses))
        return replace(self, charged=(*self.charged, *losses), places=places)

    @property
    def most(self) -> int:
        """The cap, in nano-epsilon or releases."""
        cap = self.cap.cap
        return cap.epsilon.nano if cap.epsilon is not None else cap.releases or 0

    @property
    def spent(self) -> str:
        """What is charged so far."""
        return self.words(self.total)

    @property
    def limit(self) -> str:
        """The cap."""
        return self.words(self.most)

    @property
    def left(self) -> str:
        """What may still be charged."""
        return self.words(self.remaining)

    @property
    def remaining(self) -> int:
        """What may still be charged, in nano-epsilon or releases."""
        return self._leave(self.total)

    def list_remaining(self) -> list[int]:
        """What might still be charged after each loss of `charged`, in their order."""
        return [self._leave(self._spent(sums)) for sums in self._add_up()]

    def _leave(self, total: int | None) -> int:
        return 0 if total is None else max(self.most - total, 0)

    def after(self, loss: Loss, *, cohort: str = "") -> str:
        """What would be charged with this loss too."""
        return self.plus(loss, cohort=cohort).spent

    def admits(self, *losses: Loss, cohort: str = "") -> bool:
        """Whether these losses fit under the cap together; an infinite one never does."""
        total = self.plus(*losses, cohort=cohort).total
        return total is not None and total <= self.most

    def of(self, loss: Loss) -> int | None:
        """What a loss counts here: nano-epsilon, or releases; None is infinity."""
        cap = self.cap.cap
        return loss.releases if cap.epsilon is None else loss.of(cap.definition or "dp", cap.scope or "column")

    def sum_of(self, losses: Iterable[Loss]) -> int | None:
        """The exact sum of several losses; None is infinity."""
        parts = [self.of(loss) for loss in losses]
        return None if None in parts else sum(part or 0 for part in parts)

    def words(self, amount: int | None) -> str:
        """An amount in the cap's unit."""
        is_count = self.cap.cap.epsilon is None and amount is not None
        return str(amount) if is_count else format_amount(amount)


def format_amount(amount: int | None) -> str:
    """Nano-epsilon as it is written; None is infinity."""
    return "infinity" if amount is None else format_nano(amount)


def _spent_in(cohorts: Mapping[str, int]) -> int:
    """What one person can have been charged for in a population: what is of no cohort, and the most of one cohort."""
    return cohorts.get("", 0) + max((amount for cohort, amount in cohorts.items() if cohort), default=0)
