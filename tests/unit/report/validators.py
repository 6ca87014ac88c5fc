"""The official validators of standards, offline: what one would fetch is in `tests/fixtures/standards`."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

SCHEMAS = Path(__file__).parents[2] / "fixtures" / "standards" / "schemas.zip"
LOCK = Path(__file__).parents[3] / "requirements.lock"
# Of each file of a package: the standard, who judges it in tests (packages of the lock in braces), who did by hand
JUDGES: Mapping[str, tuple[str, str, str]] = {
    "datapackage.json": (
        "Data Package 2.0; 1 where the policy has no `about`",
        "its profile by {jsonschema}; {frictionless}",
        "",
    ),
    "ddi-codebook.xml": ("DDI-Codebook 2.6", "its XML schema by {lxml}", "xmlschema 4.3.2"),
    "dcat.jsonld": ("DCAT-AP 3.0.1", "its SHACL shapes by {pyshacl}", ""),
    "CITATION.cff": ("Citation File Format 1.2.0", "its schema by {jsonschema}", "cffconvert 2.0.0"),
    "dp_deployment.yaml": (
        "OpenDP Differential Privacy Deployments Registry, schema of 15 July 2026",
        "its schema by {jsonschema}, and its own function for addresses",
        "",
    ),
    "data.csv": ("CSV, described by `datapackage.json`", "{frictionless}, {pandas}, {pyarrow}, {duckdb}", ""),
    "data.parquet": ("Parquet", "{pyarrow}, {pandas}, {duckdb}", ""),
    "data.dta": ("Stata 118", "{pyreadstat}, {pandas}: labels, values and letters as they came in", ""),
    "data.sav": ("SPSS", "{pyreadstat}: labels, values and user-missing codes as they came in", ""),
    "attestation.intoto.json": ("in-toto Statement v1", "a reader after its specification", "in-toto-attestation 0.9.3"),
    "attestation.intoto.json.sig": ("SSHSIG (PROTOCOL.sshsig)", "`ssh-keygen` of the machine", "OpenSSH 9.2p1"),
}


def list_judges() -> Iterator[str]:
    """The rows of the table in docs/formats.md, with the versions of the lock."""
    locked = {
        name: f"{name} {version}" for name, version in re.findall(r"^([a-z0-9-]+)==([^ ]+)", LOCK.read_text(), re.MULTILINE)
    }
    for file, (standard, judge, by_hand) in JUDGES.items():
        yield f"| `{file}` | {standard} | {judge.format_map(locked)} | {by_hand or '-'} |"


def read_schema(name: str) -> bytes:
    """One file of what the standards publish."""
    with zipfile.ZipFile(SCHEMAS) as schemas:
        return schemas.read(name)


@cache
def load_codebook_schema() -> Any:
    """That of DDI-Codebook, with all that it includes."""
    from lxml import etree

    class Packed(etree.Resolver):
        def resolve(self, system_url: str, public_id: str | None, context: Any) -> Any:
            name = system_url.partition("packed:")[2]
            return self.resolve_string(read_schema(name), context, base_url=system_url)

    parser = etree.XMLParser()
    parser.resolvers.add(Packed())
    name = "ddi-codebook-2.6/codebook.xsd"
    return etree.XMLSchema(etree.fromstring(read_schema(name), parser, base_url=f"packed:{name}"))


def find_codebook_faults(file: Path) -> list[str]:
    """By the schema of DDI-Codebook 2.6."""
    from lxml import etree

    schema = load_codebook_schema()
    schema.validate(etree.parse(str(file)))
    return [str(fault) for fault in schema.error_log]


def find_catalogue_faults(file: Path) -> Iterator[str]:
    """By the shapes of DCAT-AP 3.0.1."""
    import pyshacl
    import rdflib

    said = rdflib.Graph().parse(str(file), format="json-ld", publicID="https://data.example.org/package/")
    shapes = rdflib.Graph().parse(data=read_schema("dcat-ap-3.0.1/dcat-ap-SHACL.ttl").decode(), format="turtle")
    holds, _, words = pyshacl.validate(said, shacl_graph=shapes, advanced=True)
    if not holds:
        yield str(words)


def find_entry_faults(text: str) -> Iterator[str]:
    """By the schema of the Differential Privacy Deployments Registry, as its own check applies it, and by its rules on quotes and
    on the address of an entry, which is made by its own function."""
    import jsonschema
    import yaml

    schema = yaml.safe_load(read_schema("deployments-registry/deployments-schema.yaml"))
    entry = yaml.safe_load(text)
    checker = jsonschema.Draft7Validator.FORMAT_CHECKER
    for fault in jsonschema.Draft7Validator(schema, format_checker=checker).iter_errors(entry):
        yield f"{'.'.join(map(str, fault.path))}: {fault.message}"
    yield from (f"quoted by {token.style}" for token in yaml.scan(text) if getattr(token, "style", None) == ">")
    known: dict[str, Any] = {}
    exec(read_schema("deployments-registry/update_slug.py").decode(), known)  # noqa: S102 the registry's own
    if (slug := known["make_slug"](entry)) != entry["url_slug"]:
        yield f"url_slug: {slug} is meant"
