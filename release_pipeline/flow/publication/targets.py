"""What site.yaml says of targets, beside the site's own folder, that published packages go to. No token stands there: ${NAME} is
taken from the environment when something is delivered, and is never shown."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.flow.site import Site
from release_pipeline.policy.messages import suggest
from release_pipeline.policy.sections import find_secret_in_address
from release_pipeline.policy.text import Path as Place
from release_pipeline.policy.text import Problem
from release_pipeline.policy.typed import Plain
from release_pipeline.store.addresses import find_address_fault, is_mail
from release_pipeline.store.schemes import STORES
from release_pipeline.store.targets.target import Parcel, Target, TargetFailed

FILES, DATAVERSE, ZENODO, CKAN = "to", "dataverse", "zenodo", "ckan"
KINDS = {  # the key that says what a target is and has its address, and the other keys, of which those with a star must be there
    FILES: (),
    DATAVERSE: ("collection*", "token*", "metadata*"),
    ZENODO: ("token*", "metadata*"),
    CKAN: ("organisation*", "token*", "metadata"),
}
_METADATA = {
    DATAVERSE: ("authors*", "contact*", "subjects"),
    ZENODO: (
        *("creators*", "license*", "communities", "contributors", "dates", "grants", "keywords", "language", "locations"),
        *("method", "publication_date", "references", "related_identifiers", "subjects"),
    ),
    CKAN: ("author", "author_email", "license_id", "maintainer", "maintainer_email"),
}
_EXAMPLE = {
    DATAVERSE: "As in {authors: [Office of Statistics], contact: data@example.org, subjects: [Social Sciences]}.",
    ZENODO: "As in {creators: [{name: Office of Statistics}], license: cc-by-4.0}.",
    CKAN: "As in {license_id: cc-by}.",
}
_NAME = re.compile(r"[a-z][a-z0-9-]{0,62}")
_TOKEN = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True, slots=True)
class TargetSettings:
    """A target as it is declared. `address` may be shown; `policies`: whose packages go there, None being all; `place`: the
    collection or organisation; `token`: the variable that has it."""

    name: str
    kind: str
    address: str
    policies: frozenset[str] | None = None
    place: str = ""
    token: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def wants(self, policy: str) -> bool:
        """Whether packages of a policy go there."""
        return self.policies is None or policy in self.policies


def read_targets(site: Site) -> tuple[TargetSettings, ...]:
    """The targets of a site; none where site.yaml has none. Refuses what it does not mean, with every fault and its place."""
    said = site.read_section("targets", lambda said: _find_faults(site, said))
    return tuple(_build(name, one) for name, one in cast(dict[str, dict[str, Any]], said or {}).items())


def find_target_faults(site: Site) -> list[str]:
    """What is wrong with the targets of a site, in words."""
    try:
        read_targets(site)
    except ReleasePipelineError as error:
        return [error.in_full]
    return []


def open_target(site: Site, settings: TargetSettings, parcel: Parcel) -> Target:
    """A target for one package, with the token that the environment has."""
    if settings.kind == FILES:
        from release_pipeline.store.targets.files import FolderTarget, ObjectTarget

        folder = _find_folder(site, settings.address)
        return ObjectTarget(settings.address, parcel) if folder is None else FolderTarget(folder, settings.address, parcel)
    token = site.environment.get(settings.token)
    if token is None:
        raise TargetFailed(
            f"its token, {settings.token}, is not in the environment.",
            where=settings.name,
            remedy=f"Set the environment variable {settings.token}.",
        )
    return _open_server(settings, token, parcel)


def _open_server(settings: TargetSettings, token: str, parcel: Parcel) -> Target:
    from release_pipeline.store.targets.ckan import CkanTarget
    from release_pipeline.store.targets.dataverse import DataverseTarget
    from release_pipeline.store.targets.http import open_server
    from release_pipeline.store.targets.zenodo import ZenodoTarget

    said = settings.metadata
    if settings.kind == DATAVERSE:
        server = open_server(settings.address, settings.name, {"X-Dataverse-key": token})
        known = (tuple(said["authors"]), said["contact"], tuple(said.get("subjects", ["Other"])))
        return DataverseTarget(server, settings.place, *known, parcel)
    if settings.kind == ZENODO:
        return ZenodoTarget(open_server(settings.address, settings.name, {"Authorization": f"Bearer {token}"}), said, parcel)
    return CkanTarget(open_server(settings.address, settings.name, {"Authorization": token}), settings.place, said, parcel)


def _build(name: str, said: Mapping[str, Any]) -> TargetSettings:
    kind = next(kind for kind in KINDS if kind in said)
    policies = frozenset(said["policies"]) if "policies" in said else None
    place = str(said.get("collection", said.get("organisation", "")))
    token = _TOKEN.fullmatch(str(said.get("token", "")))
    variable = "" if token is None else token[1]
    return TargetSettings(name, kind, str(said[kind]), policies, place, variable, said.get("metadata", {}))


def _find_folder(site: Site, address: str) -> Path | None:
    """The folder that an address is of, if it is of one."""
    scheme, is_address, _ = address.partition("://")
    if not is_address:
        return (site.home / address).resolve()
    return Path(unquote(urlsplit(address).path)).resolve() if scheme.lower() == "file" else None


def _find_faults(site: Site, said: Plain) -> Iterator[Problem]:
    if not isinstance(said, dict) or not said:
        yield ("targets",), "this is no mapping of names to targets.", 'As in {bucket: {to: "s3://open-data/health"}}.'
        return
    policies = [file.stem for file in site.policy_files()]
    for name, one in said.items():
        place: Place = ("targets", name)
        if _NAME.fullmatch(name) is None:
            yield place, "this is no name of a target.", "Use lower-case letters, digits, hyphens."
        kinds = [kind for kind in KINDS if kind in one] if isinstance(one, dict) else []
        if not isinstance(one, dict) or len(kinds) != 1:
            yield place, f"what kind of target it is says one of {', '.join(KINDS)}.", "As in {to: folder}."
            continue
        yield from _find_wrong_keys(one, (*KINDS[kinds[0]], f"{kinds[0]}*", "policies"), place)
        yield from _find_wrong_address(site, kinds[0], one[kinds[0]], (*place, kinds[0]))
        yield from _find_wrong_parts(kinds[0], one, place)
        wanted = one.get("policies", policies)
        if not isinstance(wanted, list) or ("policies" in one and not wanted) or any(each not in policies for each in wanted):
            known = ", ".join(policies) or "none"
            yield (*place, "policies"), "policies is a list of policies of this site.", f"There are: {known}."


def _find_wrong_keys(said: Mapping[str, Plain], keys: Collection[str], place: Place) -> Iterator[Problem]:
    """Keys that are unknown, or missing; those with a star must be there."""
    known = [key.rstrip("*") for key in keys]
    for name in said:
        if name not in known:
            yield (*place, name), f"'{name}' is not known here.", suggest(name, known)
    for key in keys:
        if key.endswith("*") and key[:-1] not in said:
            yield place, f"'{key[:-1]}' is missing.", ""


def _find_wrong_address(site: Site, kind: str, said: Plain, place: Place) -> Iterator[Problem]:
    """What is wrong with an address; it is not repeated, for it may have a secret."""
    if not isinstance(said, str) or not said.strip() or not said.isprintable() or "${" in said:
        yield place, "this is no address.", "Write it out: it stands in the registry; a token is what the environment has."
    elif kind != FILES:
        if (fault := find_address_fault(said)) is not None:
            yield place, fault, "Write it as https://HOST."
    elif (secret := find_secret_in_address(said)) is not None:
        yield place, f"{secret}.", "Leave them out: the store knows who writes by the environment."
    elif (folder := _find_folder(site, said)) is None:
        if said.partition("://")[0].lower() not in STORES:
            known = ", ".join(f"{name}://" for name in STORES)
            yield place, "such an address is not known.", f"Known are folders, file:/// and {known}."
    elif urlsplit(said).netloc and "://" in said:
        yield place, "this folder is on another machine.", "Write file:///FOLDER, with three slashes."
    else:
        parents, own = (folder, *folder.parents), (site.releases.resolve(), site.vault.resolve(), site.dagster_home.resolve())
        if any(one in parents for one in own) or folder == site.home.resolve():
            yield place, "this folder is the site's own.", "Name another."


def _find_wrong_parts(kind: str, said: Mapping[str, Plain], place: Place) -> Iterator[Problem]:
    if "token" in said and _TOKEN.fullmatch(str(said["token"])) is None:
        yield (*place, "token"), "a token is named, and does not stand here.", "Put it into the environment: ${NAME}."
    for name in ("collection", "organisation"):
        if name in said and not _is_text(said[name]):
            yield (*place, name), f"{name} is a text.", ""
    metadata = said.get("metadata")
    if metadata is None:
        return
    if kind == FILES or not isinstance(metadata, dict):
        yield (*place, "metadata"), "this is no mapping.", _EXAMPLE.get(kind, "")
        return
    place = (*place, "metadata")
    yield from _find_wrong_keys(metadata, _METADATA[kind], place)
    for name, value in metadata.items():
        if name.rstrip("*") in [key.rstrip("*") for key in _METADATA[kind]] and not _is_right(kind, name, value):
            yield (*place, name), f"{name} is not as it should be.", _EXAMPLE[kind]


def _is_right(kind: str, name: str, value: Plain) -> bool:
    """Whether a part of the metadata has the shape that the target asks for."""
    if name == "contact":
        return is_mail(value)
    if kind == DATAVERSE:
        return isinstance(value, list) and bool(value) and all(_is_text(one) for one in value)
    if kind == CKAN or name == "license":
        return _is_text(value)
    if name == "creators":
        named = (
            isinstance(value, list) and bool(value) and all(isinstance(one, dict) and _is_text(one.get("name")) for one in value)
        )
        return named and _is_json(value)
    return _is_json(value)


def _is_text(value: Plain) -> bool:
    return isinstance(value, str) and bool(value.strip()) and value.isprintable()


def _is_json(value: Plain) -> bool:
    if isinstance(value, dict):
        return all(_is_json(one) for one in value.values())
    if isinstance(value, list):
        return all(_is_json(one) for one in value)
    return isinstance(value, str | int)
