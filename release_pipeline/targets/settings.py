"""The section `targets` of site.yaml: the targets of published packages besides the site's folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, cast
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, StrictStr, TypeAdapter, ValidationInfo

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.store.environment import STORES
from release_pipeline.store.settings import Say, Settings, meets, wrong
from release_pipeline.store.site import Site
from release_pipeline.targets.target import Target
from release_pipeline.verifier.documents import NAME


@dataclass(frozen=True, slots=True)
class TargetSettings:
    """A target as it is declared. `address` may be shown; `policies`: the policies whose packages go there, None for all."""

    name: str
    address: str
    policies: frozenset[str] | None = None

    def wants(self, policy: str) -> bool:
        """Return whether packages of a policy go there."""
        return self.policies is None or policy in self.policies


def read_targets(site: Site) -> tuple[TargetSettings, ...]:
    """Return the targets of a site, none where site.yaml has none; raises an error with every fault and its place."""
    targets: dict[str, _Target] = site.read_section("targets", _TARGETS, site) or {}
    return tuple(TargetSettings(name, target.to, target.policies) for name, target in targets.items())


def find_target_faults(site: Site) -> list[str]:
    """Return what is wrong with the targets of a site, in sentences."""
    try:
        read_targets(site)
    except ReleasePipelineError as error:
        return [error.in_full]
    return []


def open_target(site: Site, settings: TargetSettings, release: str) -> Target:
    """Return a target for the package of one release."""
    from release_pipeline.targets.files import FolderTarget, ObjectTarget

    folder = _find_folder(site, settings.address)
    return ObjectTarget(settings.address, release) if folder is None else FolderTarget(folder, settings.address, release)


def _find_folder(site: Site, address: str) -> Path | None:
    """Return the folder of an address, or None if the address names no folder."""
    scheme, is_address, _ = address.partition("://")
    if not is_address:
        return (site.home / address).resolve()
    return Path(unquote(urlsplit(address).path)).resolve() if scheme.lower() == "file" else None


def _has_secret(address: str) -> bool:
    """Return whether an address may have a secret: a name or password, options (a signature is one), or another address that it
    is read through."""
    _, is_address, rest = address.partition("://")
    return bool(is_address) and ("@" in rest.partition("/")[0] or "?" in rest or "#" in rest or "::" in address)


def _check_address(address: str, info: ValidationInfo) -> str:
    """Return the address, if it is one of files; no message repeats it, since it may have a secret."""
    site = cast(Site, info.context)
    if not address.strip() or not address.isprintable() or "${" in address:
        raise ValueError
    if _has_secret(address):
        what = "an address of an object store has no user, password, options or further addresses."
        raise wrong(what, "Leave them out: the store knows who writes by the environment.")
    if (folder := _find_folder(site, address)) is None:
        if address.partition("://")[0].lower() not in STORES:
            known = ", ".join(f"{name}://" for name in STORES)
            raise wrong("such an address is not known.", f"Known are folders, file:/// and {known}.")
    elif urlsplit(address).netloc and "://" in address:
        raise wrong("this folder is on another machine.", "Write file:///FOLDER, with three slashes.")
    else:
        of_site = {site.releases.resolve(), site.vault.resolve(), site.dagster_home.resolve()}
        if of_site & {folder, *folder.parents} or folder == site.home.resolve():
            raise wrong("this folder is the site's own.", "Name another.")
    return address


def _check_policies(policies: Any, info: ValidationInfo) -> Any:
    known = [file.stem for file in cast(Site, info.context).policy_files()]
    if not isinstance(policies, list) or not policies or any(name not in known for name in cast("list[Any]", policies)):
        there = f"There are: {', '.join(known) or 'none'}."
        raise wrong("policies is a list of policies of this site.", there)
    return cast("list[Any]", policies)


class _Target(Settings):
    """The settings of one target."""

    mapping: ClassVar[tuple[str, str]] = ("this is no mapping.", "As in {to: folder}.")

    to: Annotated[
        StrictStr,
        AfterValidator(_check_address),
        Say("this is no address.", "Write it out: it stands in the registry."),
    ]
    policies: Annotated[frozenset[str], BeforeValidator(_check_policies)] | None = None


_TARGETS: TypeAdapter[dict[str, _Target]] = TypeAdapter(
    Annotated[
        dict[
            Annotated[
                str,
                meets(lambda name: NAME.fullmatch(name) is not None),
                Say("this is no name of a target.", "Use lower-case letters, digits, hyphens."),
            ],
            _Target,
        ],
        Field(min_length=1),
        Say("this is no mapping of names to targets.", 'As in {bucket: {to: "s3://open-data/health"}}.'),
    ]
)
