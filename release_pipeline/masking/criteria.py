"""Singling out, linkability and inference (WP14) of a release: what of the attacks' success is beyond their control groups.

What a limit is on is foreseen, before anything is charged: releases are simulated with noise that is never released, or made as
they will be where nothing is drawn, and attacked as the audit attacks the one that leaves. What the audit finds of that one is
told beside it, and gates nothing (methods.md section 2; docs/decisions/0026-limits-by-criterion.md). All of it is confidential.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from release_pipeline.audit.audit import LEAST_ATTACKED, attack_table, draw_attacked
from release_pipeline.audit.compared import Compared
from release_pipeline.audit.gates import ATTACKED, Gate
from release_pipeline.masking import RECORD, Strategy
from release_pipeline.masking.strategy import Progress
from release_pipeline.mechanisms.attacks import (
    CRITERIA,
    INFERRED,
    TARGETS,
    Attack,
    Attacked,
    AttackedColumn,
    People,
    bound_gain,
    find_criterion,
    infer,
    link,
    name_attacks,
    pool_attacks,
    single_out_beside,
)
from release_pipeline.mechanisms.basis.samples import Share
from release_pipeline.mechanisms.noise import Context, NoiseStream, noise_stream, shuffled_positions
from release_pipeline.policy import Policy
from release_pipeline.policy.file.sections import Gates, count_halved
from release_pipeline.policy.kinds import NoiseColumn
from release_pipeline.rows.columns import Read, encode_entries, load_table, needed_for, read_with, select_cells

ROUNDS = 10  # simulated releases, each attacked on people and a control group of its own
TENTH = 10  # one record in so many is left out
OVERALL = "inferring"  # the mean over the columns, which would hide the worst: no criterion is judged by it
PURPOSE = "criteria"  # of all streams here

Entry = dict[str, Any]  # one attack, as evidence keeps it
_NONE = asdict(Share(0.0, 0.0, 1.0, 0, None))
# of a release that left too few rows to attack
_UNTRIED = {"attack": _NONE, "control": _NONE, "risk": _NONE, "guess": 0.0, "worst": ""}


def expect_criteria(policy: Policy, strategy: Strategy, read: Read, *, secret: bytes, progress: Progress) -> list[Entry]:
    """What attacks on a release of these records are to be expected to find, an entry for each attack; nothing where no limit is
    set, or where there are too few records. Of rounds that leave too few rows to attack nothing may be left out: an attack that
    was not in each of them is not told, as if it had been foreseen of the others alone. The same records and method give the same
    figures. `secret` is none of a release's; `strategy` makes a release, one part where the policy publishes parts."""
    is_halved = policy.protect.makes_clusters
    least = count_halved(policy.protect.k, policy.parts) if is_halved else LEAST_ATTACKED
    if not policy.gates.of_criteria or read("records", [RECORD]).num_rows < least:
        return []
    found: dict[str, list[Attack]] = {}
    attack = _attack_beside if is_halved else _attack_rows
    for number, attacks in enumerate(attack(policy, strategy, read, secret)):
        progress(f"attacking simulated releases, {number + 1} of {ROUNDS}")
        for one in attacks:
            found.setdefault(one.name, []).append(one)
    return [_note(policy, pool_attacks(rounds)) for rounds in found.values() if len(rounds) == ROUNDS]


def _attack_beside(policy: Policy, strategy: Strategy, read: Read, secret: bytes) -> Iterator[list[Attack]]:
    """Of a method whose released values are made of several people's: releases that are made without their control group. A
    person who was in it has a share in the means of others, even where the own row is taken out: beside such a control group an
    attack would seem to gain less than it does, or nothing.

    Linking and inferring are tried on a release without one record in ten, so that the rest lies nearly as close as all do. For
    singling out, which is of whole tables of the same size, each round has one of a half, with the other half beside it.
    """
    for number in range(ROUNDS):
        streams, found = _stream_of(secret, number), list[Attack]()
        half = _leave_out(policy, strategy, read, secret, number, share=2)
        if half is not None:
            table, people = half
            found += single_out_beside(table, replace(people, left=people.targets), stream=streams("single out"))
        rest = _leave_out(policy, strategy, read, secret, number, share=TENTH)
        if rest is not None and len(rest[0].columns) > 1:
            table, people = rest
            few = [replace(people, targets=people.targets[:most], control=people.control[:most]) for most in (TARGETS, INFERRED)]
            found.append(link(table, stream=streams("link"), people=few[0]))
            found += infer(table, stream=streams("infer"), people=few[1]).columns
        yield found


def _leave_out(
    policy: Policy, strategy: Strategy, read: Read, secret: bytes, number: int, *, share: int
) -> tuple[Attacked, People] | None:
    """A release of the records without one in so many, drawn at random, who are the control group, and as many of its people."""
    count = read("records", [RECORD]).num_rows
    order = shuffled_positions(count, _stream_of(secret, number)("left out", share))
    outside, inside = order[: count // share], np.sort(order[count // share :])
    some = _read_some(read, inside)
    released = _release(strategy, some, _group(strategy, some, secret, number), secret, number)
    if released is None:
        return None
    own = inside[released.column(RECORD).to_numpy()]
    rows, control = len(own), outside[: len(own)]
    compared = Compared(policy, read, released, own, released)
    columns: list[AttackedColumn] = []
    for name, column in policy.released_columns.items():
        before, after = compared.original(name), released.column(name)
        if isinstance(column, NoiseColumn):
            original, masked = compared.seen(name), after.to_numpy()
        else:
            original, masked = encode_entries([before, after])
        padded = np.append(masked, original[control])  # an attacked table has a row for everybody; these are looked at by none
        columns.append(AttackedColumn(name, original, padded, np.append(own, control)))
    place = np.arange(rows + len(control), dtype=np.intp)
    targets = shuffled_positions(rows, _stream_of(secret, number)("targets", share))[: len(control)]
    return Attacked(tuple(columns)), People(targets, place[rows:], place[:rows])


def _attack_rows(policy: Policy, strategy: Strategy, read: Read, secret: bytes) -> Iterator[list[Attack]]:
    """Of a method that gives each record a value of its own: in each round a release of all records, attacked as the audit does,
    with a control group whose rows are taken out."""
    made: Mapping[str, pa.Table] | None = None
    for number in range(ROUNDS):
        streams = _stream_of(secret, number)
        if made is None or policy.parts > 1:  # classes of all records are the same in each round
            made = _group(strategy, read, secret, number)
        released = _release(strategy, read, made, secret, number)
        if released is None:
            continue
        own = np.asarray(released.column(RECORD).to_numpy(), dtype=np.intp)
        attacks, by_column = attack_table(draw_attacked(Compared(policy, read, released, own, released), streams), streams)
        yield [*(attack for attack in attacks if attack.name != OVERALL), *by_column.values()]


def _group(strategy: Strategy, read: Read, secret: bytes, number: int) -> Mapping[str, pa.Table]:
    """The exact part of a simulated release."""
    return strategy.group(read, secret=secret, context=(PURPOSE, number), progress=_quiet).tables


def _release(strategy: Strategy, read: Read, made: Mapping[str, pa.Table], secret: bytes, number: int) -> pa.Table | None:
    """A release of some records as it would leave, with noise that never does; how much suppression may drop is judged elsewhere.
    None where nobody would be left to attack."""
    context = (PURPOSE, number)
    masked = strategy.mask(read_with(made, read), secret=secret, context=context, progress=_quiet)
    released = load_table(strategy.suppress(read_with(made, read), masked).table)
    return released if released.num_rows >= LEAST_ATTACKED else None


def _stream_of(secret: bytes, number: int) -> Callable[..., NoiseStream]:
    """The random choices of one round, each by its purpose."""

    def stream(*purpose: Context) -> NoiseStream:
        return noise_stream(secret, PURPOSE, number, *purpose)

    return stream


def _read_some(read: Read, rows: npt.NDArray[np.intp]) -> Read:
    """Some of the records, ascending, as if there were no others: in a room of their own they are numbered from 0 on."""
    places, numbers = pa.array(rows), pa.array(np.arange(len(rows), dtype=np.int64))

    def read_some(table: str, columns: Sequence[str] | None, *, where: tuple[str, str] | None = None) -> pa.Table:
        some = read(table, columns if columns is None else needed_for(columns, where)).take(places)
        if RECORD in some.column_names:
            some = some.set_column(some.column_names.index(RECORD), RECORD, numbers)
        return select_cells(some, columns, where)

    return read_some


def _note(policy: Policy, attack: Attack) -> Entry:
    """An attack as evidence keeps it: `beyond` its control group, as a share of what was left to gain (GEM23), and the `most`
    of it."""
    criterion, column = find_criterion(attack.name)
    return {
        "criterion": criterion,
        "attack": attack.name,
        "column": column,
        "rate": asdict(attack.attack),
        "control": asdict(attack.control),
        "guess": attack.guess,
        "beyond": asdict(attack.risk),
        "most": bound_gain(attack),
        "limit": find_limit(policy.gates, criterion, column),
    }


def find_limit(gates: Gates, criterion: str, column: str) -> float | None:
    """What a policy lets an attack gain beyond its control group; None where it sets no limit."""
    limit = gates.of_criteria.get(criterion)
    if isinstance(limit, Mapping):
        limit = limit.get(column)
    return None if limit is None else float(limit)


def judge_criteria(policy: Policy, foreseen: Sequence[Mapping[str, Any]]) -> list[Gate]:
    """A gate for each attack that the policy limits, on the most that it gains beyond its control group as far as was tried: the
    upper end of its interval, so that nothing passes because little was tried. Where nothing was foreseen it fails. An attack
    for which no attempt could be made has no gate, for that shows nothing, as long as another one shows the criterion."""
    known = {entry["attack"]: entry["most"] for entry in foreseen}
    found: list[Gate] = []
    for criterion in policy.gates.of_criteria:
        names = name_attacks(criterion, policy.released_columns)
        shown = [name for name in names if known.get(name) is not None]
        for name in names:
            column = find_criterion(name)[1]
            limit, most = find_limit(policy.gates, criterion, column), known.get(name)
            if limit is None or (CRITERIA[criterion].attacks and shown and name in known and most is None):
                continue
            value = np.nan if most is None else float(most)
            found.append(Gate(f"gain of {name} beyond its control group", value, limit, basis=ATTACKED, column=column))
    return found


def list_criteria(policy: Policy, audit: Mapping[str, Any], foreseen: Sequence[Mapping[str, Any]]) -> list[Entry]:
    """Every attack on the released table, criterion by criterion, with what was `foreseen` of those that have a limit; record
    linkage, which has no control group, with those that it is told beside. `audit`: its figures, as evidence keeps them."""
    expected = {entry["attack"]: entry for entry in foreseen}
    found = {attack["name"]: attack for attack in (*audit.get("attacks", ()), *audit.get("inference", {}).values())}
    entries: list[Entry] = []
    for criterion, own in CRITERIA.items():
        for name in name_attacks(criterion, policy.released_columns):
            known = expected.get(name)
            attack = found.get(name, _UNTRIED if known else None)
            if attack is None:
                continue
            entry = {"criterion": criterion, "attack": name, "column": find_criterion(name)[1], "guess": attack["guess"]}
            entry |= {"worst": attack["worst"], "rate": attack["attack"], "control": attack["control"], "beyond": attack["risk"]}
            if known is not None:
                entry |= {"foreseen": known["beyond"], "most": known["most"], "limit": known["limit"]}
            entries.append(entry)
        if own.linkage and audit.get("record_linkage") is not None:
            guess = audit["record_linkage_by_chance"]
            linked = {"attack": "record linkage", "rate": audit["record_linkage"], "guess": guess}
            entries.append({"criterion": criterion, "column": "", **linked})
    return entries


def _quiet(_: str) -> None:
    """Strategies tell every column."""
