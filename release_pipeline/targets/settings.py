"""What site.yaml says of targets, beside the site's own folder, that published packages go to. No token stands there: ${NAME} is
taken from the environment when something is delivered, and is never shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeAlias, cast
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, StrictStr, TypeAdapter, ValidationInfo, create_model

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.policy.documents import Plain
from release_pipeline.policy.file.sections import find_secret_in_address
from release_pipeline.store.environment import STORES, find_address_fault, is_mail
from release_pipeline.store.settings import Say, Settings, is_text, meets, wrong
from release_pipeline.store.site import Site
from release_pipeline.targets.target import Parcel, Target, TargetFailed

FILES, DATAVERSE, ZENODO, CKAN = "to", "dataverse", "zenodo", "ckan"  # the key that says what a target is has its address
_NAME = re.compile(r"[a-z][a-z0-9-]{0,62}")
_TOKEN = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_OF_DATAVERSE = "As in {authors: [Office of Statistics], contact: data@example.org, subjects: [Social Sciences]}."
_OF_ZENODO = "As in {creators: [{name: Office of Statistics}], license: cc-by-4.0}."
_OF_CKAN = "As in {license_id: cc-by}."
_MORE_OF_ZENODO = (
    *("communities", "contributors", "dates", "grants", "keywords", "language", "locations", "method"),
    *("publication_date", "references", "related_identifiers", "subjects"),
)


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
    said: dict[str, _Target] = site.read_section("targets", _TARGETS, site) or {}
    return tuple(target.declare(name) for name, target in said.items())


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
        from release_pipeline.targets.files import FolderTarget, ObjectTarget

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
    from release_pipeline.targets.ckan import CkanTarget
    from release_pipeline.targets.dataverse import DataverseTarget
    from release_pipeline.targets.http import open_server
    from release_pipeline.targets.zenodo import ZenodoTarget

    said = settings.metadata
    if settings.kind == DATAVERSE:
        server = open_server(settings.address, settings.name, {"X-Dataverse-key": token})
        known = (tuple(said["authors"]), said["contact"], tuple(said.get("subjects", ["Other"])))
        return DataverseTarget(server, settings.place, *known, parcel)
    if settings.kind == ZENODO:
        return ZenodoTarget(open_server(settings.address, settings.name, {"Authorization": f"Bearer {token}"}), said, parcel)
    return CkanTarget(open_server(settings.address, settings.name, {"Authorization": token}), settings.place, said, parcel)


def _find_folder(site: Site, address: str) -> Path | None:
    """The folder that an address is of, if it is of one."""
    scheme, is_address, _ = address.partition("://")
    if not is_address:
        return (site.home / address).resolve()
    return Path(unquote(urlsplit(address).path)).resolve() if scheme.lower() == "file" else None


def _check_address(address: str, info: ValidationInfo) -> str:
    """The address of files or of a server (`to`, or another key); a message does not repeat it, for it may have a secret."""
    site = cast(Site, info.context)
    if not address.strip() or not address.isprintable() or "${" in address:
        raise ValueError
    if info.field_name != FILES:
        if (fault := find_address_fault(address)) is not None:
            raise wrong(fault, "Write it as https://HOST.")
    elif (secret := find_secret_in_address(address)) is not None:
        raise wrong(f"{secret}.", "Leave them out: the store knows who writes by the environment.")
    elif (folder := _find_folder(site, address)) is None:
        if address.partition("://")[0].lower() not in STORES:
            known = ", ".join(f"{name}://" for name in STORES)
            raise wrong("such an address is not known.", f"Known are folders, file:/// and {known}.")
    elif urlsplit(address).netloc and "://" in address:
        raise wrong("this folder is on another machine.", "Write file:///FOLDER, with three slashes.")
    else:
        parents, own = (folder, *folder.parents), (site.releases.resolve(), site.vault.resolve(), site.dagster_home.resolve())
        if any(one in parents for one in own) or folder == site.home.resolve():
            raise wrong("this folder is the site's own.", "Name another.")
    return address


def _check_policies(said: Any, info: ValidationInfo) -> Any:
    known = [file.stem for file in cast(Site, info.context).policy_files()]
    if not isinstance(said, list) or not said or any(name not in known for name in cast("list[Any]", said)):
        there = f"There are: {', '.join(known) or 'none'}."
        raise wrong("policies is a list of policies of this site.", there)
    return cast("list[Any]", said)


def _as_in(name: str, example: str) -> Say:
    return Say(f"{name} is not as it should be.", example)


_Address: TypeAlias = Annotated[
    StrictStr,
    AfterValidator(_check_address),
    Say("this is no address.", "Write it out: it stands in the registry; a token is what the environment has."),
]
_Token: TypeAlias = Annotated[
    StrictStr,
    meets(lambda text: _TOKEN.fullmatch(text) is not None),
    Say("a token is named, and does not stand here.", "Put it into the environment: ${NAME}."),
]
_Text: TypeAlias = Annotated[StrictStr, meets(is_text)]
_Texts: TypeAlias = Annotated[list[_Text], Field(min_length=1)]


class _Metadata(Settings):
    """What a target is told of a package beside what the policy says."""


class _OfDataverse(_Metadata):
    mapping: ClassVar[tuple[str, str]] = ("this is no mapping.", _OF_DATAVERSE)

    authors: Annotated[_Texts, _as_in("authors", _OF_DATAVERSE)]
    contact: Annotated[StrictStr, meets(is_mail), _as_in("contact", _OF_DATAVERSE)]
    subjects: Annotated[_Texts, _as_in("subjects", _OF_DATAVERSE)] = Field(default_factory=list[str])


class _OfZenodo(_Metadata):
    mapping: ClassVar[tuple[str, str]] = ("this is no mapping.", _OF_ZENODO)

    creators: Annotated[
        list[dict[str, Any]],
        Field(min_length=1),
        meets(lambda people: all(is_text(one.get("name")) for one in people) and _is_json(people)),
        _as_in("creators", _OF_ZENODO),
    ]
    license: Annotated[_Text, _as_in("license", _OF_ZENODO)]


_MORE: dict[str, Any] = {
    name: (Annotated[Any, meets(lambda value: _is_json(value)), _as_in(name, _OF_ZENODO)], None) for name in _MORE_OF_ZENODO
}
_Zenodo = create_model("_Zenodo", __base__=_OfZenodo, **_MORE)


class _OfCkan(_Metadata):
    mapping: ClassVar[tuple[str, str]] = ("this is no mapping.", _OF_CKAN)

    author: Annotated[_Text, _as_in("author", _OF_CKAN)] = ""
    author_email: Annotated[_Text, _as_in("author_email", _OF_CKAN)] = ""
    license_id: Annotated[_Text, _as_in("license_id", _OF_CKAN)] = ""
    maintainer: Annotated[_Text, _as_in("maintainer", _OF_CKAN)] = ""
    maintainer_email: Annotated[_Text, _as_in("maintainer_email", _OF_CKAN)] = ""


class _Target(Settings):
    """What stands under the name of a target; each kind has its address under its own key."""

    kind: ClassVar[str]
    policies: Annotated[frozenset[str], BeforeValidator(_check_policies)] | None = None

    def declare(self, name: str) -> TargetSettings:
        """It as the rest of the program has it."""
        said: Mapping[str, Any] = self.model_dump(exclude_unset=True)
        variable = _TOKEN.fullmatch(said.get("token", ""))
        place = said.get("collection", said.get("organisation", ""))
        token = "" if variable is None else variable[1]
        return TargetSettings(name, self.kind, said[self.kind], self.policies, place, token, said.get("metadata", {}))


class _FilesTarget(_Target):
    kind: ClassVar[str] = FILES
    to: _Address


class _DataverseTarget(_Target):
    kind: ClassVar[str] = DATAVERSE
    dataverse: _Address
    collection: Annotated[_Text, Say("collection is a text.")]
    token: _Token
    metadata: _OfDataverse


class _ZenodoTarget(_Target):
    kind: ClassVar[str] = ZENODO
    zenodo: _Address
    token: _Token
    metadata: _Zenodo  # pyright: ignore[reportInvalidTypeForm]


class _CkanTarget(_Target):
    kind: ClassVar[str] = CKAN
    ckan: _Address
    organisation: Annotated[_Text, Say("organisation is a text.")]
    token: _Token
    metadata: _OfCkan = _OfCkan()


_KINDS: Mapping[str, type[_Target]] = {
    target.kind: target for target in (_FilesTarget, _DataverseTarget, _ZenodoTarget, _CkanTarget)
}


def _choose(said: Any, info: ValidationInfo) -> _Target:
    kinds = [kind for kind in _KINDS if kind in said] if isinstance(said, dict) else []
    if len(kinds) != 1:
        raise wrong(f"what kind of target it is says one of {', '.join(_KINDS)}.", "As in {to: folder}.")
    return _KINDS[kinds[0]].model_validate(said, context=info.context)


_TARGETS: TypeAdapter[dict[str, _Target]] = TypeAdapter(
    Annotated[
        dict[
            Annotated[
                str,
                meets(lambda name: _NAME.fullmatch(name) is not None),
                Say("this is no name of a target.", "Use lower-case letters, digits, hyphens."),
            ],
            Annotated[Any, PlainValidator(_choose)],
        ],
        Field(min_length=1),
        Say("this is no mapping of names to targets.", 'As in {bucket: {to: "s3://open-data/health"}}.'),
    ]
)


def _is_json(value: Plain) -> bool:
    if isinstance(value, dict):
        return all(_is_json(one) for one in value.values())
    if isinstance(value, list):
        return all(_is_json(one) for one in value)
    return isinstance(value, str | int)
