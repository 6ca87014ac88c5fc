"""The way of one release from its source to the candidate, stage by stage. All I/O of the stages is here.

Every stage opens the release's room in the vault, checks that the stage before it has run under the same policy, and writes its
tables and its note in one transaction. Noise is drawn once per release: what was drawn is served again, never drawn anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from release_pipeline import __version__
from release_pipeline.errors import Blocked, DataRefused, NotPassed
from release_pipeline.flow.candidate import freeze
from release_pipeline.flow.content import content_of, statistics_table, stored_statistics
from release_pipeline.flow.evidence import collect_evidence
from release_pipeline.flow.exposure import person_key
from release_pipeline.flow.gates import check_differencing, check_history, expect_errors
from release_pipeline.flow.notes import ReleaseNotes
from release_pipeline.flow.reading import (
    NO_RELEASES,
    collect_facts,
    count_releases,
    kept_entries,
    needed_columns,
    refuse,
    release_filter,
)
from release_pipeline.flow.reservation import Reservation, next_revision, reserve, reserved_secret
from release_pipeline.flow.states import list_standings
from release_pipeline.policy.model import KeepColumn, NoiseColumn, Person
from release_pipeline.policy.plan import describe_claim
from release_pipeline.privacy.consistency import choose_consistency
from release_pipeline.privacy.noise import noise_stream, shuffled_positions
from release_pipeline.stages.audit import Gate, audit_columns, judge_expected_errors
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
from release_pipeline.stages.microaggregate import fill_missing, microaggregate
from release_pipeline.stages.suppress import suppress_table
from release_pipeline.stages.validate import Judge, Verdict, judge_counts, judge_expectations
from release_pipeline.store.vault import ReleaseRoom

STAGES = ("ingested", "validated", "microaggregated", "masked", "suppressed", "audited", "candidate")
RECORD = "release_pipeline_record"  # the row number of a record in source order, never released


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
class ReleaseFlow(ReleaseNotes):
    """One release of one policy, and its stages as methods in the order of `STAGES`."""

    def ingest(self) -> StageResult:
        """`raw`: the needed columns of this release's records, as the source delivered them. Not without a population and room
        under its cap: the binding check comes with the charge."""
        policy = self.policy
        self.check_may_begin()
        source = self._source()
        names, checks = match_header(source.header, policy)
        refuse(source.name, [check for check in checks if not readable_without(check, policy)])
        outside = count_releases(policy, source, names) or NO_RELEASES
        needed = {name: names[name] for name in needed_columns(policy) if name in names}
        self.progress(f"ingesting {source.name}")
        with self._room() as room:
            raw = room.ingest(source, needed, release=release_filter(policy, names, self.id.release))
            records = raw.count_records()
            room.forget(["validated"])
            told = {"records": records, "source": source.name, "header": list(source.header), "outside": outside}
            version = self._version([records, content_of(room, "raw")])
            self._write_note(room, "ingested", version, ["raw"], **told)
        self.probe.passed("ingested")
        facts = {"rows": records, "columns_read": len(needed), "columns_in_source": len(source.header)}
        return StageResult("ingested", version, facts)

    def collect_checks(self) -> tuple[list[Check], list[str], str]:
        """The checks of what was ingested, by counts alone, the warnings, and the version of it all. Makes `records`."""
        policy = self.policy
        with self._room() as room:
            note = self._previous(room, "ingested", check=True)
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
            version = self._version([note["version"], facts.records, content_of(room, "records")])
        return checks, [*warn(facts, policy), *warn_of_releases(note["outside"], policy)], version

    def validate(self, judge: Judge = judge_counts) -> StageResult:
        """`records`: only what is released, typed. Refused, with nothing left of it, when any family of checks fails."""
        policy = self.policy
        checks, warnings, judged = self.collect_checks()
        verdicts = judge(checks)
        messages = [message for verdict in verdicts for message in verdict.messages]
        if not all(verdict.passed for verdict in verdicts):
            with self._room() as room:
                room.drop(["records"])
                room.forget(["validated"])
            self.note_blocked("; ".join(messages))
            return StageResult("validated", "", {}, verdicts=tuple(verdicts))
        with self._room() as room:
            note = self._previous(room, "ingested", check=True)
            content = content_of(room, "records")
            if judged != self._version([note["version"], note["records"], content]):
                raise NotPassed(
                    "another run ingested or validated it meanwhile.",
                    where=str(self.id),
                    remedy="Run the release from its start.",
                )
            version = self._version([content])
            tables = ["records"]
            if isinstance(policy.person, Person):
                people = room.raw(note["source"]).people(policy.person.column, person_key(self.site, policy.population))
                room.write("people", people)
                tables.append("people")
            room.drop(["raw"])
            room.forget(["ingested"])
            keyed = self.site.keyed_hash(json.dumps(content).encode())
            passed = {verdict.family: len(verdict.checks) for verdict in verdicts}
            told = {"records": note["records"], "warnings": list(warnings), "content": keyed, "checks": passed}
            self._write_note(room, "validated", version, tables, **told)
        self.probe.passed("validated")
        facts = {"rows": note["records"], "checks": len(checks)}
        return StageResult("validated", version, facts, verdicts=tuple(verdicts), words=tuple(warnings))

    def microaggregate(self) -> StageResult:
        """Reserve the loss, then `membership` and `statistics`: clusters, exact sums and scales of every noise column."""
        policy = self.policy
        with self._room() as room:
            note = self._previous(room, "validated", check=True)
            drawn = self._find_note(room, "masked")
            if drawn is not None:
                return self._serve(room, drawn, note, "microaggregated")
            standings = list_standings(self.site)
            check_history(self, room, standings)
            check_differencing(self, room, standings)
            expected = expect_errors(self, room, note["content"])
            wanted = Reservation(policy, self.id, note["records"], note["version"])
            secret = reserve(self.site, wanted, self.probe)
            version = self._version([note["version"], hashlib.sha256(secret).hexdigest()])
            stored = self._find_note(room, "microaggregated")
            if stored is not None and stored["version"] == version:  # a retry must not calibrate anew: another machine may round
                self._check_tables(room, stored)
                return self._microaggregated(version, stored["columns"])
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
            room.expose(str(self.id), people=isinstance(policy.person, Person))
            told = {"input": note["version"], "columns": evidence}
            self._write_note(room, "microaggregated", version, ["membership", "statistics"], **told)
            self.probe.passed("the clusters are made, not yet committed")
        self.probe.passed("the clusters are committed")
        return self._microaggregated(version, evidence)

    def mask(self) -> StageResult:
        """`masked`: noise on the statistics, rows shuffled; committed, noted as drawn, and then the secret is forgotten."""
        policy = self.policy
        with self._room() as room:
            note = self._previous(room, "microaggregated", check=True)
            self._check_records(room, note)
            drawn = self._find_note(room, "masked")
            if drawn is not None:  # an attempt may have stopped right after it committed
                self._check_tables(room, drawn)
                self.note_drawn(drawn["version"])
                return self._masked(drawn)
            secret = reserved_secret(self.site, policy, self.id)
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
            room.write("masked", table)
            version = self._version([content_of(room, "masked")])
            drawn = self._write_note(room, "masked", version, ["masked"], input=note["input"], records=table.num_rows)
            self.probe.passed("the noise is drawn, not yet committed")
        self.probe.passed("the masked table is committed")
        self.note_drawn(drawn["version"])
        return self._masked(drawn)

    def suppress(self) -> StageResult:
        """`suppressed`: the masked records without small groups of kept quasi-identifiers, or blocked when that is too many."""
        policy, rule = self.policy, self.policy.suppress
        with self._room() as room:
            note = self._previous(room, "masked", check=True)
            table = room.read("masked")
            quasi = [name for name, column in policy.kept_columns.items() if column.role == "quasi"]
            done = suppress_table(table, quasi, below=rule.quasi_groups_below if rule else 0)
            numbers = {
                "cells_blanked": done.cells,
                "rows_dropped": done.dropped,
                "anonymity_k": done.anonymity,
                "rows": done.table.num_rows,
            }
            too_many = rule is not None and done.records > rule.at_most * table.num_rows
            nobody = done.table.num_rows == 0
            version = self._version([note["version"], done.cells, done.dropped])
            if not too_many and not nobody:
                room.write("suppressed", done.table)
                self._write_note(room, "suppressed", version, ["suppressed"], **numbers)
        self.probe.passed("suppressed")
        if rule is not None and too_many:
            limit = float(rule.at_most * 100)
            self.block(f"{done.share:.1%} of the records would have to be suppressed, and at most {limit:g}% may be.")
        if nobody:
            self.block("every record would have to be suppressed, so nothing is left to release.")
        return StageResult("suppressed", version, {**numbers, "share_suppressed": done.share})

    def audit(self) -> StageResult:
        """Figures of utility and risk, and the gates of the policy judged on the expected error."""
        policy = self.policy
        with self._room() as room:
            suppressed = self._previous(room, "suppressed", check=True)
            clusters = self._previous(room, "microaggregated")
            self._check_records(room, clusters)
            names = list(policy.noise_columns)
            original = room.read("records", names)
            released = room.read("suppressed", [RECORD, *names])
            own = released.column(RECORD).to_numpy()
            stream = noise_stream(bytes.fromhex(self.site.keyed_hash(str(self.id).encode())), "linkage sample")
            expected = {name: clusters["columns"][name]["error"] for name in names}
            internal = {"expected_error": expected, **audit_columns(original, released, own, stream=stream)}
            gates = judge_expected_errors(expected, policy.gates.expected_error)
            version = self._version([suppressed["version"], "audit"])
            judged = [(gate.name, gate.value, gate.limit) for gate in gates]
            self._write_note(room, "audited", version, [], internal=internal, gates=judged)
        self.probe.passed("audited")
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
            suppressed = self._previous(room, "suppressed", check=True)
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
            evidence = self._evidence(facts, audited, clusters, validated)
            self.check_frozen()
            digest = freeze(
                self.site.candidate(str(self.id)), table, policy.publish.formats, evidence
            )  # in the room: one at a time
        self.probe.passed("the candidate's folder is in its place")
        facts["candidate_hash"] = digest
        self.note_candidate(digest, facts)
        self.probe.passed("the candidate is noted")
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

    def _evidence(
        self, facts: Mapping[str, Any], audited: Mapping[str, Any], clusters: Mapping[str, Any], validated: Mapping[str, Any]
    ) -> dict[str, Any]:
        """What the candidate's folder says of itself, for the people who sign it."""
        policy = self.policy
        return {
            "confidential": "internal figures: exact losses, scales and errors describe the data and must not be published",
            "salt": self.site.keyed_hash(f"salt of the evidence of {self.id}".encode()),  # no hash of it can be guessed at
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
            "checks_passed": validated["checks"],
            "warnings": validated["warnings"],
        }

    def _serve(self, room: ReleaseRoom, drawn: Mapping[str, Any], validated: Mapping[str, Any], stage: str) -> StageResult:
        """What an earlier attempt stored, if it was for the same input and policy."""
        if drawn["policy_hash"] != self._hash or drawn["input"] != validated["version"]:
            raise Blocked(
                "noise was already drawn for this release, for other data or another policy; it is not drawn again.",
                where=str(self.id),
                remedy=f"Restore source and policy. {next_revision(self.id)}",
            )
        note = self._find_note(room, stage)
        if note is None:
            raise Blocked("an earlier attempt left no record of its clusters.", where=str(self.id), remedy=next_revision(self.id))
        return self._microaggregated(note["version"], note["columns"])

    def _microaggregated(self, version: str, evidence: Mapping[str, Any]) -> StageResult:
        facts = {"noise_columns": len(evidence), "method": self.policy.protect.method, "k": self.policy.protect.k}
        internal = {"expected_error": {name: column["error"] for name, column in evidence.items()}}
        return StageResult("microaggregated", version, facts, internal)

    def _masked(self, drawn: Mapping[str, Any]) -> StageResult:
        facts = {"rows": drawn["records"], "claim": describe_claim(self.policy)}
        return StageResult("masked", drawn["version"], facts)


__all__ = ["FAMILIES", "STAGES", "Blocked", "ReleaseFlow", "StageResult", "judge_expectations"]
