"""dcat.jsonld: DCAT-AP 3, which the data portals of European administrations harvest. Addresses of files are relative: they
become whole where the package lies."""

from __future__ import annotations

from typing import Any

from release_pipeline.report.standards.terms import Files, drop_unsaid, find_media_type, list_rows, write_json
from release_pipeline.report.view import PackageView

_CONTEXT = {
    "adms": "http://www.w3.org/ns/adms#",
    "dcat": "http://www.w3.org/ns/dcat#",
    "dct": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "spdx": "http://spdx.org/rdf/terms#",
    "vcard": "http://www.w3.org/2006/vcard/ns#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
_MEDIA = "http://www.iana.org/assignments/media-types/"


def render_dcat(package: PackageView, files: Files) -> str:
    """The data set and, as its distributions, the files that have the rows."""
    about = package.card.about
    name, email, url = about.contact.name, about.contact.email, about.contact.url
    contact = {
        "@type": "vcard:Kind",
        "vcard:fn": name or about.publisher.name,
        "vcard:hasEmail": {"@id": f"mailto:{email}"} if email else None,
        "vcard:hasURL": {"@id": url} if url else None,
    }
    document = {
        "@context": _CONTEXT,
        "@id": "./",
        "@type": "dcat:Dataset",
        "dct:title": about.title,
        "dct:description": about.description,
        "dct:identifier": package.card.release,
        "dct:issued": _date(package.card.published[:10]),
        "dcat:version": package.card.release.rpartition("/")[2],
        "dct:publisher": _make_agent(about.publisher.name, about.publisher.url),
        "dct:creator": [_make_agent(one.name, None) for one in about.contributors if one.role == "creator"],
        "dcat:contactPoint": drop_unsaid(contact),
        "dcat:keyword": list(about.keywords),
        "dct:temporal": _make_period(about.coverage.first, about.coverage.last),
        "dct:spatial": [{"@type": "dct:Location", "skos:prefLabel": place} for place in about.coverage.places],
        "dct:provenance": {
            "@type": "dct:ProvenanceStatement",
            "rdfs:label": f"{package.card.method.words}; {package.card.claim.words}",
        },
        "dcat:distribution": [_make_distribution(package, name, *files[name]) for name in list_rows(package)],
    }
    return write_json(drop_unsaid(document))


def _date(day: str) -> dict[str, str]:
    return {"@value": day, "@type": "xsd:date"}


def _make_agent(name: str, url: str | None) -> dict[str, Any]:
    return drop_unsaid({"@type": "foaf:Agent", "foaf:name": name, "foaf:homepage": {"@id": url} if url else None})


def _make_period(first: str | None, last: str | None) -> dict[str, Any] | None:
    if first is None or last is None:
        return None
    return {"@type": "dct:PeriodOfTime", "dcat:startDate": _date(first), "dcat:endDate": _date(last)}


def _make_distribution(package: PackageView, name: str, digest: str, size: int) -> dict[str, Any]:
    about = package.card.about
    algorithm = {"@id": "http://spdx.org/rdf/terms#checksumAlgorithm_sha256", "@type": "spdx:ChecksumAlgorithm"}
    return {
        "@id": f"./{name}#distribution",
        "@type": "dcat:Distribution",
        "dct:title": name,
        "dcat:accessURL": {"@id": f"./{name}"},
        "dcat:downloadURL": {"@id": f"./{name}"},
        "dcat:mediaType": {"@id": _MEDIA + find_media_type(name), "@type": "dct:MediaType"},
        "dcat:byteSize": {"@value": str(size), "@type": "xsd:nonNegativeInteger"},
        "dct:license": {"@id": about.licence.url, "@type": "dct:LicenseDocument"},
        "spdx:checksum": {
            "@type": "spdx:Checksum",
            "spdx:algorithm": algorithm,
            "spdx:checksumValue": {"@value": digest, "@type": "xsd:hexBinary"},
        },
    }
