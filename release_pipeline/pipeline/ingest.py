"""The first stage: the needed columns of the release's records, as the source delivered them."""

from __future__ import annotations

import json
from typing import Any

from release_pipeline.formats.passed_stages import Ingested, Validated
from release_pipeline.ledger.looks import begin_run
from release_pipeline.pipeline.checkpoints import find_checkpoint, write_checkpoint
from release_pipeline.pipeline.context import StageContext, StageResult
from release_pipeline.pipeline.in_place import choose_columns, hash_tables, keep_records, refuse_changed
from release_pipeline.pipeline.reading import NO_RELEASES, count_releases, refuse
from release_pipeline.pipeline.sources import list_origins, version_of
from release_pipeline.pipeline.tables import try_formats
from release_pipeline.pipeline.vaults import check_vaults
from release_pipeline.rows.checks import match_header, readable_without
from release_pipeline.store.source import FileSource


def find_table_version(context: StageContext) -> int | None:
    """Return the version of a Delta table that the release was charged for: only its records can end what was begun. None where
    nothing was charged."""
    if context.policy.source.path is None or context.read_status().charge is None:
        return None
    with context.open_workspace() as workspace:
        known = find_checkpoint(context, workspace, Validated) or find_checkpoint(context, workspace, Ingested)
    return None if known is None else known.table_version


def ingest(context: StageContext) -> StageResult:
    """Write `raw`, the needed columns of this release's records, as the source delivered them. Refused without a population and
    room under its cap: the binding check comes with the charge."""
    policy = context.policy
    context.check_may_begin()
    try_formats(policy)
    source = context.open_source(find_table_version(context))
    delivered = version_of(context.site, source)
    names, checks = match_header(source.header, policy)
    refuse(source.name, [check for check in checks if not readable_without(check, policy)])
    outside = count_releases(policy, source, names) or NO_RELEASES
    columns, release = choose_columns(policy, source, context.id.release)
    context.progress(f"ingesting {source.name}")
    origins = list_origins(context.site, policy.source, source.files if isinstance(source, FileSource) else ())
    with context.open_workspace() as workspace:
        check_vaults(context.site, policy.population, workspace)
        workspace.forget(["ingested", "validated"])
        stored = keep_records(context.site, policy, workspace, source, columns, release)
        read = hash_tables(workspace, stored.tables, stored.snapshot)
        digest = context.site.keyed_hash(json.dumps(read).encode())
        begin_run(context.site, context.id, context.policy_hash, digest=digest, origins=origins)
        if source.written is not None and version_of(context.site, source) != delivered:
            raise refuse_changed(source.name)
        content: dict[str, Any] = {"records": stored.records, "source": source.name, "header": list(source.header)}
        content |= {"outside": outside, "delivered": delivered, "origins": origins, "snapshot": stored.snapshot}
        table_version = source.delta.number if isinstance(source, FileSource) and source.delta is not None else None
        content |= {"persons": stored.persons, "table_version": table_version}
        version = context.hash_version([stored.records, stored.persons, read])
        write_checkpoint(context, workspace, Ingested, version, stored.tables, **content)
    context.probe.reached("ingested")
    facts = {**context.show_rows(stored.records), "columns_read": len(columns), "columns_in_source": len(source.header)}
    if table_version is not None:
        facts["table_version"] = table_version
    return StageResult("ingested", version, facts, source=delivered)
