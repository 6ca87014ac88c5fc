"""Which versions of the specification and its facets are written; `tests/fixtures/openlineage` has them, and a test compares."""

from __future__ import annotations

from typing import Any

from release_pipeline import __version__

PRODUCER = f"urn:release-pipeline:{__version__}"
EVENT = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
CLAIM = "urn:release-pipeline:openlineage-claim:1"  # release_pipeline/schemas/openlineage-claim-1.json
FACETS = {  # the definition of a facet, and the version of its file
    "ColumnLineageDatasetFacet": "1-2-0",
    "DataQualityAssertionsDatasetFacet": "1-1-0",
    "DatasetVersionDatasetFacet": "1-0-1",
    "DocumentationJobFacet": "1-1-0",
    "ErrorMessageRunFacet": "1-0-1",
    "NominalTimeRunFacet": "1-0-1",
    "OwnershipJobFacet": "1-0-1",
    "ParentRunFacet": "1-2-0",
    "SchemaDatasetFacet": "1-2-0",
}


def make_facet(name: str, **content: Any) -> dict[str, Any]:
    """A facet of the specification."""
    url = f"https://openlineage.io/spec/facets/{FACETS[name]}/{name}.json#/$defs/{name}"
    return {"_producer": PRODUCER, "_schemaURL": url, **content}


def make_claim(**content: Any) -> dict[str, Any]:
    """Ours: what a release claims."""
    return {"_producer": PRODUCER, "_schemaURL": CLAIM, **content}
