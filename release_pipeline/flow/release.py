"""The way of one release from its source to the candidate, stage by stage. All I/O of the stages is here.

Every stage opens the release's room in the vault, checks that the stage before it has run under the same policy, and writes its
tables and its note in one transaction. Noise is drawn once per release: what was drawn is served again, never drawn anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from release_pipeline import __version__
from release_pipeline.errors import Blocked, DataRefused, GateFailed, NotPassed, ReleasePipelineError, WrongUsage
from release_pipeline.flow.candidate import freeze
from release_pipeline.flow.content import fingerprint, statistics_table, stored_statistics
from release_pipeline.flow.evidence import collect_evidence
from release_pipeline.flow.files import make_private_folder, write_private_json
from release_pipeline.flow.reading import (
    NO_RELEASES,
    collect_facts,
    count_releases,
    kept_entries,
    needed_columns,
    refuse,
    release_filter,
)
from release_pipeline.flow.record import ReleaseRecord
from release_pipeline.flow.reservation import (
    check_charged,
    reserve,
    reserved_secret,
)
from release_pipeline.flow.site import Site
from release_pipeline.policy import Policy
from release_pipeline.policy.model import KeepColumn, NoiseColumn
from release_pipeline.policy.plan import describe_claim
from release_pipeline.privacy.consistency import choose_consistency
from release_pipeline.privacy.noise import Context, noise_stream, shuffled_positions
from release_pipeline.stages.audit import Gate, column_error, judge_expected_errors, record_linkage, sse_paper
from release_pipeline.stages.checks import (
    FAMILIES,
    Check,
    check_facts,
    check_release_column,
    check_roles,
    match_header,
    readable_without,
    warn,
    warn_of_releases,
)
from release_pipeline.stages.mask import mask
from release_pipeline.stages.microaggregate import expect_error, fill_missing, microaggregate
from release_pipeline.stages.suppress import encode, group_sizes, suppress_small_groups
from release_pipeline.stages.validate import Judge, Verdict, judge_counts, judge_expectations
from release_pipeline.store.connections import StoreError
from release_pipeline.store.registry import ReleaseId, open_registry
from release_pipeline.store.source import SourceDoor, find_source
from release_pipeline.store.vault import ReleaseRoom, open_room

STAGES = ("ingested", "validated", "microaggregated", "masked", "suppressed", "audited", "candidate")
RECORD = "release_pipeline_record"  # the row number of a record in source order, never released
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class StageResult:
    """What a stage did. `facts` may be shown to anybody who sees Dagster's UI; `internal` only where the site allows it."""

    stage: str
    version: str
    facts: dict[str, Any]
    internal: dict[str, Any] = field(default_factory=dict[str, Any])
    verdicts: tuple[Verdict, ...] = ()
    gates: tuple[Gate, ...] = ()
    words: tuple[str, ...] = ()

    @property
    def refusal(self) -> tuple[str, ...]:
        """Why the release must not go on, if it must not."""
        return tuple(message for verdict in self.verdicts if not verdict.passed for message in verdict.messages)


@dataclass(frozen=True, slots=True)
class ReleaseFlow(ReleaseRecord):
    """One release of one policy, and its stages as methods in the order of `STAGES`."""

    progress: Progress = lambda _: None

    def ingest(self) -> StageResult:
        """`raw`: the needed columns of this release's records, as the source delivered them. Not without a population and room
        under its cap: the binding check comes with the charge."""
        policy = self.policy
        self.check_cap()
        source = self._source()
        names, checks = match_header(source.header, policy)
        refuse(source.name, [check for check in checks if not readable_without(check, policy)])
        outside = count_releases(policy, source, names) or NO_RELEASES
        needed = {name: names[name] for name in needed_columns(policy) if name in names}
        self.progress(f"ingesting {source.name}")
        with self._room() as room:
            raw = room.ingest(source, needed, release=release_filter(policy, names, self._partition))
            records = raw.count_records()
            version = self._version([records, *_content(room, "raw", sorted(needed))])
            room.forget(["validated"])
            room.write_note(
                "ingested", self._note(version, records=records, source=source.name, header=list(source.header), outside=outside)
            )
        facts = {"rows": records, "columns_read": len(needed), "columns_in_source": len(source.header)}
        return StageResult("ingested", version, facts)

    def collect_checks(self) -> tuple[list[Check], list[str]]:
        """The checks of what was ingested, by counts alone, and the warnings. Makes `records`, which the roles check looks at."""
        policy = self.policy
        with self._room() as room:
            note = self._previous(room, "ingested")
            raw = room.raw(note["source"])
            facts = collect_facts(policy, raw)
            columns: dict[str, Any] = {RECORD: pa.array(np.arange(facts.records, dtype=np.int64))}
            for name, column in policy.columns.items():
                if isinstance(column, NoiseColumn) and raw.kinds.get(name) in ("text", "number"):
                    columns[name] = pa.array(fill_missing(column, raw.numbers(name)), from_pandas=False)
                elif isinstance(column, KeepColumn) and name in raw.kinds:
                    entries = raw.categories(name)
                    columns[name] = entries if facts.columns[name]["undeclared"] else kept_entries(column, entries)
            room.write("records", pa.table(columns))
            _, header = match_header(note["header"], policy)
            going_on = [name for name in room.columns("records") if name != RECORD]
            releases = check_release_column(note["outside"], policy)
            checks = [*header, *releases, *check_roles(going_on, policy), *check_facts(facts, policy)]
        return checks, [*warn(facts, policy), *warn_of_releases(note["outside"], policy)]

    def validate(self, judge: Judge = judge_counts) -> StageResult:
        """`records`: only what is released, typed. Refused, with nothing left of it, when any family of checks fails."""
        checks, warnings = self.collect_checks()
        verdicts = judge(checks)
        messages = [message for verdict in verdicts for message in verdict.messages]
        if not all(verdict.passed for verdict in verdicts):
            with self._room() as room:
                room.drop(["records"])
                room.forget(["validated"])
            self.note_blocked("; ".join(messages))
            return StageResult("validated", "", {}, verdicts=tuple(verdicts))
        with self._room() as room:
            note = self._previous(room, "ingested")
            content = _content(room, "records", sorted(room.columns("records")))
            version = self._version(content)
            room.drop(["raw"])
            room.forget(["ingested"])
            keyed = self.site.keyed_hash(json.dumps(content).encode())
            told = {"records": note["records"], "warnings": list(warnings), "content": keyed}
            room.write_note("validated", self._note(version, **told))
        facts = {"rows": note["records"], "checks": len(checks)}
        return StageResult("validated", version, facts, verdicts=tuple(verdicts), words=tuple(warnings))

    def microaggregate(self) -> StageResult:
        """Reserve the loss, then `membership` and `statistics`: clusters, exact sums and scales of every noise column."""
        policy = self.policy
        with self._room() as room:
            note = self._previous(room, "validated")
            drawn = room.note("masked")
            if drawn is not None:
                return self._serve(room, drawn, note, "microaggregated")
            expected = self._expect_errors(room, note["content"])
            secret = reserve(self.site, policy, self.id, records=note["records"], source=note["version"])
            membership: dict[str, Any] = {}
            parts: list[pa.Table] = []
            evidence: dict[str, Any] = {}
            for name in policy.noise_columns:
                self.progress(f"clustering {name}")
                numbers = room.read("records", [name]).column(name).to_numpy()
                exact = microaggregate(policy, name, numbers, secret=secret, context=self._context)
                membership[name] = pa.array(exact.cluster.astype(np.int32))
                parts.append(statistics_table(name, exact))
                evidence[name] = collect_evidence(exact, error=expected[name]).to_json()
            room.write("membership", pa.table(membership))
            room.write("statistics", pa.concat_tables(parts))
            version = self._version([note["version"], hashlib.sha256(secret).hexdigest()])
            room.write_note("microaggregated", self._note(version, input=note["version"], columns=evidence))
        return self._microaggregated(version, evidence)

    def mask(self) -> StageResult:
        """`masked`: noise on the statistics, rows shuffled; committed, noted as drawn, and then the secret is forgotten."""
        policy = self.policy
        with self._room() as room:
            note = self._previous(room, "microaggregated")
            self._check_records(room, note)
            drawn = room.note("masked")
            if drawn is not None:  # an attempt may have stopped right after it committed
                self.note_drawn()
                return self._masked(drawn)
            check_charged(self.site, policy, self.id)
            secret = reserved_secret(self.site, self.id)
            statistics, membership = room.read("statistics"), room.read("membership")
            order = shuffled_positions(membership.num_rows, noise_stream(secret, *self._context, "shuffle"))
            columns: dict[str, Any] = {RECORD: pa.array(order)}
            for name, column in policy.columns.items():
                if isinstance(column, NoiseColumn):
                    self.progress(f"masking {name}")
                    exact = stored_statistics(policy, name, statistics, membership, note["columns"][name])
                    columns[name] = pa.array(mask(exact, secret=secret, context=(*self._context, name))[order])
                elif isinstance(column, KeepColumn):
                    columns[name] = room.read("records", [name]).column(0).combine_chunks().take(pa.array(order))
            table = pa.table(columns)
            content = [fingerprint(table.select([name])) for name in table.column_names]
            room.write("masked", table)
            drawn = self._note(self._version(content), input=note["input"], records=table.num_rows)
            room.write_note("masked", drawn)
        self.note_drawn()
        return self._masked(drawn)

    def suppress(self) -> StageResult:
        """`suppressed`: the masked records without small groups of kept quasi-identifiers, or blocked when that is too many."""
        policy, rule = self.policy, self.policy.suppress
        with self._room() as room:
            note = self._previous(room, "masked")
            table = room.read("masked")
            quasi = [name for name, column in policy.kept_columns.items() if column.role == "quasi"]
            codes = encode([table.column(name) for name in quasi])
            blanked, dropped, share, too_many = 0, 0, 0.0, False
            if rule is not None:
                done = suppress_small_groups(codes, rule.quasi_groups_below)
                blanked, dropped, share = int(done.blank.sum()), int(done.dropped.sum()), done.share
                too_many = done.records > rule.at_most * len(done.dropped)
                for place, name in enumerate(quasi):
                    if not done.blank[:, place].any():
                        continue
                    column = pa.array(table.column(name).to_pylist(), table.column(name).type, mask=done.blank[:, place])
                    table = table.set_column(table.column_names.index(name), name, column)
                table = table.filter(pa.array(~done.dropped))
                codes = encode([table.column(name) for name in quasi])
            anonymity = int(group_sizes(codes).min()) if quasi and table.num_rows else None
            numbers = {"cells_blanked": blanked, "rows_dropped": dropped, "anonymity_k": anonymity, "rows": table.num_rows}
            version = self._version([note["version"], blanked, dropped])
            nobody = table.num_rows == 0
            if not too_many and not nobody:
                room.write("suppressed", table)
                room.write_note("suppressed", self._note(version, **numbers))
        if rule is not None and too_many:
            limit = float(rule.at_most * 100)
            self.block(f"{share:.1%} of the records would have to be suppressed, and at most {limit:g}% may be.")
        if nobody:
            self.block("every record would have to be suppressed, so nothing is left to release.")
        return StageResult("suppressed", version, {**numbers, "share_suppressed": share})

    def audit(self) -> StageResult:
        """Figures of utility and risk, and the gates of the policy judged on the expected error."""
        policy = self.policy
        with self._room() as room:
            suppressed = self._previous(room, "suppressed")
            clusters = self._previous(room, "microaggregated")
            self._check_records(room, clusters)
            names = list(policy.noise_columns)
            original = room.read("records", names)
            released = room.read("suppressed", [RECORD, *names])
            own = released.column(RECORD).to_numpy()
            x = np.stack([original.column(name).to_numpy()[own] for name in names], axis=1)
            y = np.stack([released.column(name).to_numpy() for name in names], axis=1)
            everybody = np.stack([original.column(name).to_numpy() for name in names], axis=1)
            errors = {name: column_error(x[:, i], y[:, i]) for i, name in enumerate(names)}
            stream = noise_stream(bytes.fromhex(self.site.keyed_hash(str(self.id).encode())), "linkage sample")
            linkage, tried = record_linkage(everybody, y, own, stream=stream)
            expected = {name: clusters["columns"][name]["error"] for name in names}
            gates = judge_expected_errors(expected, policy.gates.expected_error)
            internal = {
                "error": errors,
                "expected_error": expected,
                "sse_paper": sse_paper(x, y),
                "record_linkage_percent": linkage,
                "record_linkage_sample": tried,
            }
            version = self._version([suppressed["version"], "audit"])
            room.write_note("audited", self._note(version, internal=internal, gates=[(g.name, g.value, g.limit) for g in gates]))
        facts = {
            "gates": len(gates),
            "gates_passed": sum(gate.passed for gate in gates),
            "anonymity_k": suppressed["anonymity_k"],
        }
        return StageResult("audited", version, facts, internal, gates=tuple(gates))

    def freeze(self) -> StageResult:
        """The candidate: a frozen folder with a hash over all of it. Refused unless every gate, re-read here, has passed."""
        policy = self.policy
        with self._room() as room:
            audited = self._previous(room, "audited")
            suppressed = self._previous(room, "suppressed")
            validated = self._previous(room, "validated")
            clusters = self._previous(room, "microaggregated")
            self._check_records(room, clusters)
            failed = [gate.words for gate in (Gate(*parts) for parts in audited["gates"]) if not gate.passed]
            released = [name for name in policy.columns if name in policy.noise_columns or name in policy.kept_columns]
            table = room.read("suppressed", released)
        if failed:
            self.block("; ".join(failed))
        refuse(str(self.id), check_roles(table.column_names, policy))
        facts = self.public_facts(rows_in=validated["records"], rows_out=table.num_rows, suppressed=suppressed)
        evidence = {
            "confidential": "internal figures: exact losses, scales and errors describe the data and must not be published",
            "salt": self.site.keyed_hash(
                f"salt of the evidence of {self.id}".encode()
            ),  # so that no hash of it can be guessed at
            "tool": f"release-pipeline {__version__}",
            "release": str(self.id),
            "policy": json.loads(policy.canonical_json()),
            "facts": facts,
            "consistency": choose_consistency(
                policy.protect.consistency, method=policy.protect.method, scope=policy.protect.scope
            ),
            "units": "scales are of the cluster sums, in the column's unit; errors are mean squares over the column's variance",
            "columns": clusters["columns"],
            "audit": audited["internal"],
            "gates": audited["gates"],
            "warnings": validated["warnings"],
        }
        self.check_frozen()
        digest = freeze(self.site.candidate(str(self.id)), table, policy.publish.formats, evidence)
        facts["candidate_hash"] = digest
        with open_registry(self.site.registry) as registry:
            registry.set_state(self.id, "candidate", policy_hash=self._hash, candidate_hash=digest, facts=facts)
        return StageResult("candidate", digest, facts)

    def run(self) -> StageResult:
        """Every stage in order, judged by the plain checks; what `run` does without Dagster."""
        with self.noting_refusals():
            self.ingest()
            validated = self.validate()
            if validated.refusal:
                raise DataRefused("the data do not meet the policy.", findings=validated.refusal, where=str(self.id))
            for stage in (self.microaggregate, self.mask, self.suppress, self.audit):
                stage()
            return self.freeze()

    def block(self, reason: str) -> NoReturn:
        """Note the release as blocked, with the reason, and raise."""
        self.note_blocked(reason)
        raise Blocked(reason, where=str(self.id))

    def _expect_errors(self, room: ReleaseRoom, content: str) -> dict[str, float]:
        """The expected error of every noise column, and the gates on it judged: before anything is charged, so that a policy that
        cannot pass costs nothing. The same data and method give the same figures, so that nobody tries until they pass."""
        method = self.policy.protect.model_dump_json()
        secret = bytes.fromhex(self.site.keyed_hash(json.dumps(["expected error", content, method]).encode()))
        expected: dict[str, float] = {}
        for name in self.policy.noise_columns:
            self.progress(f"expecting the error of {name}")
            numbers = room.read("records", [name]).column(name).to_numpy()
            exact = microaggregate(self.policy, name, numbers, secret=secret, context=())
            expected[name] = expect_error(exact, numbers, secret=secret, context=(name,))
        failed = [gate for gate in judge_expected_errors(expected, self.policy.gates.expected_error) if not gate.passed]
        if failed:
            folder = self.site.vault / "refused"
            make_private_folder(folder)
            file = folder / f"{str(self.id).replace('/', '~')}.json"
            write_private_json(file, {"release": str(self.id), "gates": [(gate.name, gate.value, gate.limit) for gate in failed]})
            words = tuple(gate.words for gate in failed)
            raise GateFailed(" ".join(words), findings=words, where=str(self.id), remedy="No noise was drawn.")
        return expected

    @contextmanager
    def noting_refusals(self) -> Iterator[None]:
        """Note the reason of what is refused in the registry; not of a stage that was started out of turn, or had to wait."""
        try:
            yield
        except (NotPassed, StoreError):
            raise
        except ReleasePipelineError as refused:
            findings = refused.findings if isinstance(refused, DataRefused) else ()
            self.note_blocked(" ".join((refused.what, *findings)))
            raise

    def _serve(self, room: ReleaseRoom, drawn: Mapping[str, Any], validated: Mapping[str, Any], stage: str) -> StageResult:
        """What an earlier attempt stored, if it was for the same input and policy."""
        if drawn["policy_hash"] != self._hash or drawn["input"] != validated["version"]:
            raise Blocked(
                "noise was already drawn for this release, for other data or another policy; it is not drawn again.",
                where=str(self.id),
                remedy="Restore source and policy, or open the next revision.",
            )
        note = room.note(stage)
        if note is None:
            raise Blocked("an earlier attempt left no record of its clusters.", where=str(self.id))
        return self._microaggregated(note["version"], note["columns"])

    def _microaggregated(self, version: str, evidence: Mapping[str, Any]) -> StageResult:
        facts = {"noise_columns": len(evidence), "method": self.policy.protect.method, "k": self.policy.protect.k}
        internal = {"expected_error": {name: column["error"] for name, column in evidence.items()}}
        return StageResult("microaggregated", version, facts, internal)

    def _masked(self, drawn: Mapping[str, Any]) -> StageResult:
        facts = {"rows": drawn["records"], "claim": describe_claim(self.policy)}
        return StageResult("masked", drawn["version"], facts)

    def _previous(self, room: ReleaseRoom, stage: str) -> dict[str, Any]:
        """The note of a stage that must have run under this very policy."""
        note = room.note(stage)
        if note is None:
            raise NotPassed(
                f"the stage '{stage}' has not been passed.", where=str(self.id), remedy="Run the release from its start."
            )
        if note["policy_hash"] != self._hash:
            raise NotPassed(
                f"the stage '{stage}' was passed under another policy.",
                where=str(self.id),
                remedy="Run the release from its start.",
            )
        return note

    def _check_records(self, room: ReleaseRoom, clusters: Mapping[str, Any]) -> None:
        """Refuse when the records in the vault are no longer those that the clusters were made of."""
        if self._previous(room, "validated")["version"] != clusters["input"]:
            raise Blocked(
                "the records were validated anew since, and they are others.",
                where=str(self.id),
                remedy="Restore the source and run the release from its start.",
            )

    def _note(self, version: str, **content: Any) -> dict[str, Any]:
        return {"policy_hash": self._hash, "version": version, **content}

    def _version(self, parts: Sequence[object]) -> str:
        return self.site.keyed_hash(json.dumps([self._hash, str(self.id), *parts]).encode())

    def _source(self) -> SourceDoor:
        return find_source(self.policy.source, folder=self.site.home, values=self.site.environment, expected=self.policy.declared)

    @contextmanager
    def _room(self) -> Iterator[ReleaseRoom]:
        with open_room(self.site.vault, self.policy.population, self.id.room) as room:
            yield room

    @property
    def _partition(self) -> str | None:
        return None if isinstance(self.policy.releases, str) else self.id.release

    @property
    def _context(self) -> tuple[Context, ...]:
        return (self._hash, str(self.id), 0)


def open_release(site: Site, policy_name: str, release: str | None, *, progress: Progress = lambda _: None) -> ReleaseFlow:
    """The flow of one release of a policy of the site; `release` may be left out where there is only one."""
    policy = site.policy(policy_name)
    names = partitions(policy)
    if release is None and len(names) == 1:
        release = names[0]
    if release not in names:
        what = f"policy {policy.policy} has no release {release}." if release else f"policy {policy.policy} has several releases."
        raise WrongUsage(what, remedy=f"Name one with --release: {', '.join(names)}.")
    return ReleaseFlow(site, policy, ReleaseId(policy.policy, release), progress)


def partitions(policy: Policy) -> list[str]:
    """The names of a policy's releases."""
    return ["once"] if isinstance(policy.releases, str) else list(policy.releases)


def _content(room: ReleaseRoom, table: str, columns: Sequence[str]) -> list[tuple[str, str]]:
    """Each column's name with the hash of its content."""
    return [(name, fingerprint(room.read(table, [name]))) for name in columns]


__all__ = ["FAMILIES", "STAGES", "Blocked", "ReleaseFlow", "StageResult", "judge_expectations", "open_release", "partitions"]
