"""The results of a stage in the vault: its tables, and a sealed note with their hashes."""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from release_pipeline.errors import Blocked, NotPassed, ReleasePipelineError
from release_pipeline.formats import versions as formats
from release_pipeline.formats.passed_stages import PASSED, Checkpoint, Masked, Microaggregated, Validated
from release_pipeline.mechanisms.basis.grid import IntArray
from release_pipeline.pipeline.context import StageContext
from release_pipeline.pipeline.reservation import next_revision
from release_pipeline.pipeline.vaults import people_sums_key, read_people_sums, seal_people_sums
from release_pipeline.policy.documents import read_as
from release_pipeline.store.vault import ReleaseWorkspace

Kind = TypeVar("Kind", bound=Checkpoint)
OF_PEOPLE = ("people", "owners")  # the tables with the persons of the records
Read: TypeAlias = Mapping[str, Sequence[str] | None]  # by table: the columns that a stage reads, None of which are all


def write_checkpoint(
    context: StageContext, workspace: ReleaseWorkspace, kind: type[Kind], version: str, tables: Sequence[str], **content: Any
) -> Kind:
    """Write and return the checkpoint of a stage, with the hashes of its tables, sealed: without the vault's key, no change of
    either goes unnoticed."""
    stage = kind.stage
    header = {
        "policy_hash": context.policy_hash,
        "version": version,
        "tables": {name: workspace.hash_table(name) for name in tables},
    }
    checkpoint = json.loads(json.dumps({**header, **content}))  # as it will be read
    workspace.write_checkpoint(stage, {**checkpoint, "seal": _seal(context, stage, checkpoint)})
    return read_as(kind, checkpoint, where=_name_note(context, stage))


def find_checkpoint(context: StageContext, workspace: ReleaseWorkspace, kind: type[Kind]) -> Kind | None:
    """Return the checkpoint of a stage, if there is one; refused when it is not what was written."""
    stage = kind.stage
    checkpoint = workspace.checkpoint(stage)
    if checkpoint is None:
        return None
    seal = checkpoint.pop("seal", "")
    if not hmac.compare_digest(str(seal).encode(), _seal(context, stage, checkpoint).encode()):
        raise _refuse_changed(context, f"the note of the stage '{stage}'")
    where = _name_note(context, stage)
    return read_as(kind, formats.NOTE.read(checkpoint, where=where), where=where)


def read_checkpoint(
    context: StageContext, workspace: ReleaseWorkspace, kind: type[Kind], *, check: bool = False, read: Read | None = None
) -> Kind:
    """Return the checkpoint of a stage that must have run under this very policy; with `check`, and its tables as they were: all,
    or those that are read."""
    checkpoint, stage = find_checkpoint(context, workspace, kind), kind.stage
    if checkpoint is None:
        raise NotPassed(
            f"the stage '{stage}' has not been passed.", where=str(context.id), remedy="Run the release from its start."
        )
    if checkpoint.policy_hash != context.policy_hash:
        raise NotPassed(
            f"the stage '{stage}' was passed under another policy.",
            where=str(context.id),
            remedy="Run the release from its start.",
        )
    if check:
        check_tables(context, workspace, checkpoint, read)
    return checkpoint


def check_tables(context: StageContext, workspace: ReleaseWorkspace, checkpoint: Checkpoint, read: Read | None = None) -> None:
    """Refuse unless the tables of a checkpoint, or those of them that are read, are as they were when it was written."""
    there = workspace.tables()
    for name, prints in checkpoint.tables.items():
        if read is not None and name not in read:
            continue
        columns = None if read is None else read[name]
        known = set(prints) if columns is None else set(columns)
        is_whole = name in there and set(workspace.columns(name)) == set(prints) >= known  # no column was added or removed
        if not is_whole or workspace.hash_table(name, columns) != {column: prints[column] for column in known}:
            raise _refuse_changed(context, f"the table {name}")


def check_records(context: StageContext, workspace: ReleaseWorkspace, clusters: Microaggregated, *, are_read: bool) -> None:
    """Refuse when the records were validated again since the clusters were made from them; where they are read, also when those
    in the vault are others."""
    validated = read_checkpoint(context, workspace, Validated)
    if are_read:
        check_tables(context, workspace, validated, {name: None for name in validated.tables if name not in OF_PEOPLE})
    if validated.version != clusters.input:
        raise Blocked(
            "the records were validated again since, and they are others.",
            where=str(context.id),
            remedy="Restore the source and run the release from its start.",
        )


def find_faults(context: StageContext, workspace: ReleaseWorkspace, drawn: str, *, deep: bool) -> Iterator[str]:
    """Yield the parts of a drawn release that are not in the vault as its sealed checkpoints record; `deep`: every table is
    hashed again, too. Two checkpoints may have one table: each fault is reported once."""
    yield from dict.fromkeys(_find_faults(context, workspace, drawn, deep=deep))


def _find_faults(context: StageContext, workspace: ReleaseWorkspace, drawn: str, *, deep: bool) -> Iterator[str]:
    there = workspace.tables()
    for kind in PASSED:
        try:
            checkpoint = find_checkpoint(context, workspace, kind)
            if checkpoint is None:
                if kind is Masked:
                    yield "its masked table is missing"
                continue
            if isinstance(checkpoint, Masked) and checkpoint.version != drawn:
                yield "its masked table is another than the one that was noted as drawn"
            for name in sorted(set(checkpoint.tables) - there):
                yield f"the table {name} is missing"
            if deep and set(checkpoint.tables) <= there:
                check_tables(context, workspace, checkpoint)
        except ReleasePipelineError as error:
            yield error.what.rstrip(".")


def _name_note(context: StageContext, stage: str) -> str:
    return f"{context.id}, the note of the stage '{stage}'"


def _refuse_changed(context: StageContext, what: str) -> Blocked:
    return Blocked(
        f"{what} in the vault is not what was written.",
        where=str(context.id),
        remedy=f"Find out who wrote to the vault, and restore it. {next_revision(context.id)}",
    )


def _seal(context: StageContext, stage: str, checkpoint: Mapping[str, Any]) -> str:
    return context.site.keyed_hash(json.dumps(["note", str(context.id), stage, checkpoint], sort_keys=True).encode())


def keep_people(context: StageContext, workspace: ReleaseWorkspace) -> None:
    """Record who is in the release outside its schema, under the seal of the earlier records (`check_vaults` missed none)."""
    kept = read_people_sums(context.site, context.policy.population, workspace.people_note())
    people, key = context.policy.person_column is not None, people_sums_key(context.site)
    sums = workspace.expose(str(context.id), people=people, key=key, kept=kept)
    workspace.write_people_note(seal_people_sums(context.site, context.policy.population, sums))


def find_earlier_blocks(context: StageContext, workspace: ReleaseWorkspace) -> IntArray | None:
    """Return the block that each record's person was in, in earlier releases; None where nothing is swapped, or there is no
    column of the person."""
    if context.policy.swap is None or context.policy.person_column is None:
        return None
    return workspace.read_earlier_blocks(context.policy.policy)
