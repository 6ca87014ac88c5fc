"""The official validators of standards, offline: what one would fetch is in `tests/fixtures/standards`."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

SCHEMAS = Path(__file__).parents[2] / "fixtures" / "standards" / "schemas.zip"


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
