"""ro-crate-metadata.json: RO-Crate 1.1, the package as one object with all of its files, who made it of what, and by which
program; of the confidential side there is no more than that there were records."""

from __future__ import annotations

from typing import Any

from release_pipeline.report.standards.chain import ACTIVITY, PROV, STEPS, tell_activity, tell_chain
from release_pipeline.report.standards.terms import Files, drop_unsaid, find_media_type, write_json
from release_pipeline.report.view import PublicView
from release_pipeline.sentences import PUBLIC

_CONTEXT = ["https://w3id.org/ro/crate/1.1/context", {"sha256": "https://schema.org/sha256", **PROV}]
_CONFORMS = "https://w3id.org/ro/crate/1.1"


def render_ro_crate(view: PublicView, files: Files) -> str:
    """Every file that is known; and the making of the release as one action: its input, the program, who answers for it."""
    about = view.about
    home, name = about.publisher[1], about.publisher[0]
    publisher = drop_unsaid({"@id": home or "#publisher", "@type": "Organization", "name": name, "url": home})
    made = [(place, one) for place, one in enumerate(about.contributors, 1) if one.role == "creator"]
    homes = list(dict.fromkeys(one.organisation for _, one in made if one.organisation))
    creators = [
        drop_unsaid(
            {
                "@id": f"https://orcid.org/{one.orcid}" if one.orcid else f"#creator-{place}",
                "@type": "Person",
                "name": one.name,
                "affiliation": {"@id": f"#home-{homes.index(one.organisation) + 1}"} if one.organisation else None,
            }
        )
        for place, one in made
    ]
    name, email, url = about.contact
    contact = {"@id": f"mailto:{email}" if email else "#contact", "@type": "ContactPoint", "contactType": "data"}
    organisations = [{"@id": f"#home-{number}", "@type": "Organization", "name": home} for number, home in enumerate(homes, 1)]
    people = [publisher, *organisations, *creators, drop_unsaid({**contact, "name": name, "email": email, "url": url})]
    places = [{"@id": f"#place-{number}", "@type": "Place", "name": place} for number, place in enumerate(about.places, 1)]
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": about.title,
        "description": about.description,
        "identifier": view.release,
        "version": view.release.rpartition("/")[2],
        "datePublished": view.published[:10],
        "license": {"@id": about.licence[2]},
        "publisher": {"@id": publisher["@id"]},
        "author": _unwrap([{"@id": one["@id"]} for one in creators or [publisher]]),
        "contactPoint": {"@id": contact["@id"]},
        "keywords": _unwrap(list(about.keywords)),
        "citation": about.cite(view.release, view.published),
        "temporalCoverage": f"{about.first}/{about.last}" if about.first else "",
        "spatialCoverage": _unwrap([{"@id": place["@id"]} for place in places]),
        "hasPart": [{"@id": name} for name in sorted(files)],
        "mentions": [{"@id": step} for step in STEPS],
    }
    licence = {"@id": about.licence[2], "@type": "CreativeWork", "name": about.licence[1], "description": about.licence[0]}
    known = {str(one["@id"]): one for one in (licence, *people, *places)}  # one address may be of two of them: it stands once
    graph = [
        {
            "@id": "ro-crate-metadata.json",
            "@type": "CreativeWork",
            "about": {"@id": "./"},
            "conformsTo": {"@id": _CONFORMS},
        },
        drop_unsaid(root),
        *known.values(),
        *_tell_making(view, sorted(name for name in files if name.startswith("data."))),
        *tell_chain(view),
        *(_make_file(name, *files[name]) for name in sorted(files)),
    ]
    return write_json({"@context": _CONTEXT, "@graph": graph})


def _unwrap(values: list[Any]) -> Any:
    """One value as itself, as this standard wants it."""
    return values[0] if len(values) == 1 else values


def _tell_making(view: PublicView, made: list[str]) -> list[dict[str, Any]]:
    """The provenance: the action, what it took, what it was done with, and who answers for it."""
    action = {
        "@id": "#making",
        "@type": ["CreateAction", ACTIVITY],
        "name": f"{view.policy}: {view.method}",
        "description": f"{view.method_words}; {view.claim}",
        "instrument": {"@id": "#program"},
        **tell_activity("#making", agent="#steward", objects=["#confidential-records", "#policy"], results=made),
    }
    program, _, version = view.tool.rpartition(" ")
    return [
        action,
        {"@id": "#steward", "@type": "Person", "name": view.steward},
        {"@id": "#program", "@type": "SoftwareApplication", "name": program, "softwareVersion": version},
        {
            "@id": "#confidential-records",
            "@type": "CreativeWork",
            "name": PUBLIC("crate.records", population=view.population),
            "conditionsOfAccess": PUBLIC("crate.access"),
        },
    ]


def _make_file(name: str, digest: str, size: int) -> dict[str, Any]:
    return {
        "@id": name,
        "@type": "File",
        "name": name,
        "encodingFormat": find_media_type(name),
        "contentSize": str(size),
        "sha256": digest,
    }
