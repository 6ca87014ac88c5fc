"""A site: the folder with the policies, the vault, the registry and the releases."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, StrictStr, TypeAdapter

from release_pipeline import __version__
from release_pipeline.errors import ReleasePipelineError, StoreError, WrongUsage
from release_pipeline.policy import Policy, load_policy
from release_pipeline.policy.loading.load import check_name, list_policies
from release_pipeline.store.database import is_unfinished
from release_pipeline.store.environment import machine_memory, read_size
from release_pipeline.store.files import locked, make_vault, sync
from release_pipeline.store.ledger import RESTORE, VaultDamaged, check_populations
from release_pipeline.store.registry import BEGIN, Event, Registry, RegistryChanged, is_restore_over, open_registry
from release_pipeline.store.registry_copies import move_to_server
from release_pipeline.store.registry_server import Server, split_address
from release_pipeline.store.settings import (
    FILE,
    Say,
    SiteSettings,
    meets,
    read_registry,
    read_section,
    read_settings,
)
from release_pipeline.store.swap import is_stopped

HOME = "RELEASE_PIPELINE_HOME"
TOOL = f"release-pipeline {__version__}"
_KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class Site:
    """The paths of one site. `environment` is where ${NAME} in a source is looked up. `in_file`: its registry is a file, against
    site.yaml, since it comes from a backup and is not restored yet."""

    home: Path
    environment: Mapping[str, str]
    in_file: bool = False

    @property
    def populations_file(self) -> Path:
        """Return the file of the populations and their caps."""
        return self.home / "populations.yaml"

    @property
    def vault(self) -> Path:
        """Return the folder of the confidential side."""
        return self.home / "vault"

    @property
    def registry_file(self) -> Path:
        """Return the registry's file, unless site.yaml names a server."""
        return self.home / "registry.duckdb"

    @property
    def registry(self) -> Path | Server:
        """Return the registry, the chain of everything that happened: a file, or the server that site.yaml names."""
        try:
            address = None if self.in_file else read_registry(self.home / FILE)
        except ReleasePipelineError:
            if not self.registry_file.exists():
                raise
            address = None
        parts = None if address is None else split_address(address)
        if parts is None:
            return self.registry_file
        before, password, after = parts
        secret = f":{quote(self._read_password(password), safe='')}" if password else ""
        return Server(f"{before}{after}", f"{before}{secret}{after}")

    def _read_password(self, name: str) -> str:
        """Return the environment's value of NAME, or the content of a file (file:/FILE)."""
        try:
            if name.startswith("file:"):
                return Path(name.removeprefix("file:")).read_text("utf-8").rstrip("\r\n")
            return self.environment[name]
        except (KeyError, OSError, UnicodeDecodeError):
            what = f"the password of the registry is missing: {name} is not set, or cannot be read."
        remedy = "Set the variable, or let this account read the file."
        raise ReleasePipelineError(what, where=str(self.home / FILE), remedy=remedy)

    @contextmanager
    def open_registry(self, *, read_only: bool = False) -> Generator[Registry]:
        """Yield the registry in one transaction; its head is recorded in the vault, so that an older copy is detected."""
        if not (self.vault / "key").exists() and self.has_registry:
            raise VaultDamaged(
                "the vault's key is missing, and there is a registry.", where=str(self.vault / "key"), remedy=RESTORE
            )
        if not read_only:
            self._vault_key()  # before there is a registry: of several processes that begin one, each finds it with a key
        place, anchor = self.registry, _RegistryAnchor(self)
        if isinstance(place, Server) and self.registry_file.exists():
            move_to_server(self.registry_file, place, anchor=anchor, may_replace=is_restore_over)
        with open_registry(place, anchor=anchor, read_only=read_only, tool=TOOL) as registry:
            if not read_only:
                check_populations(self.vault, registry.events)
            yield registry

    @property
    def has_registry(self) -> bool:
        """Return whether anything was ever recorded here."""
        place = self.registry
        begun_in_file = self.registry_file.exists() and not is_unfinished(self.registry_file)
        return begun_in_file or (isinstance(place, Server) and place.exists())

    def read_other_registry(self, file: Path | Server) -> tuple[Event, ...]:
        """Return the events of another copy of this site's registry, sealed with its key; how many there were is not recorded."""
        with open_registry(file, anchor=_OtherAnchor(self), read_only=True) as registry:
            return registry.events

    def read_other_head(self, file: Path) -> tuple[int, str] | None:
        """Return the last event that another copy of this site's vault knows of; None where it knows of none."""
        return _RegistryAnchor(self, file).read()

    @property
    def dagster_home(self) -> Path:
        """Return the folder of Dagster's own records of this site."""
        return self.home / "dagster"

    def running_alone(self, *, waiting: Callable[[], None]) -> AbstractContextManager[None]:
        """Hold the lock under which no other command runs a release of this site; `waiting` is called if one does."""
        return locked(self.dagster_home, waiting=waiting)

    @property
    def releases(self) -> Path:
        """Return the public side: published packages."""
        return self.home / "releases"

    def package(self, release: str) -> Path:
        """Return the folder of a release's package, whether or not it exists (release: policy/partition/rN)."""
        return self.releases / release

    @property
    def desk(self) -> Path:
        """Return the folder of the desk's data outside the protocol: tokens, and what people have not signed yet."""
        return self.home / "desk"

    def changing_desk(self) -> AbstractContextManager[None]:
        """Hold the lock under which no other process changes a file of the desk; its folder is made."""
        return locked(self.desk)

    def publishing_alone(self) -> AbstractContextManager[None]:
        """Hold the lock under which no other process publishes, retracts or supersedes on this site."""
        return locked(self.vault / "publishing")

    def delivering_alone(self, *, waiting: Callable[[], None] | None = None) -> AbstractContextManager[None]:
        """Hold the lock under which no other process delivers packages of this site to targets, or recalls them."""
        return locked(self.vault / "delivering", waiting=waiting)

    def candidate(self, release: str) -> Path:
        """Return the frozen folder of a candidate (release: policy/partition/rN)."""
        return self.vault / "candidates" / release

    def policy_files(self) -> list[Path]:
        """Return all policy files, valid or not."""
        return list_policies(self.home)

    def policy_file(self, name: str) -> Path:
        """Return the file of the policy of that name, whether or not it exists."""
        return self.home / "policies" / f"{name}.yaml"

    def policy(self, name: str) -> Policy:
        """Return the policy of that name, which must be in the file of that name."""
        file = self.policy_file(name)
        if file not in self.policy_files():
            known = [path.stem for path in self.policy_files()]
            meant = Path(name).stem
            remedy = (
                f"Say its name: {meant}." if meant in known and meant != name else f"There are: {', '.join(known) or 'none'}."
            )
            raise WrongUsage(f"this site has no policy '{name}'.", where=str(self.home), remedy=remedy)
        return check_name(load_policy(file), file)

    def read_policies(self) -> tuple[list[Policy], list[str]]:
        """Return the policies that can be read, and sentences on what is wrong with the others: one never affects the others."""
        policies: list[Policy] = []
        broken: list[str] = []
        for file in self.policy_files():
            try:
                policies.append(check_name(load_policy(file), file))
            except ReleasePipelineError as error:
                broken.append(str(error))
        return policies, broken

    def shows_internal_metrics(self) -> bool:
        """Return whether site.yaml has `internal_metrics_in_ui: true`: Dagster's UI may then show figures against the
        original."""
        return self._settings().internal_metrics_in_ui

    @property
    def officer(self) -> str | None:
        """Return the fingerprint of the officer's key that site.yaml pins, if it does."""
        return self._settings().officer

    @property
    def service_key(self) -> Path | None:
        """Return the file of the key that publishes by schedule, if site.yaml names it."""
        file = self._settings().service_key
        return None if file is None else self.home / file

    @property
    def publishes_by_itself(self) -> bool:
        """Return whether the site names a service's key; false when site.yaml cannot be read."""
        try:
            return self.service_key is not None
        except ReleasePipelineError:
            return False

    @property
    def forbids_looks(self) -> bool:
        """Return whether site.yaml has `looks: forbidden`: no one may choose parameters by trials on confidential records."""
        return self._settings().looks == "forbidden"

    @property
    def said_memory(self) -> int | None:
        """Return the setting `memory` of site.yaml, the bytes that a run may take, or None."""
        said = self._settings().memory
        return None if said is None else read_size(said)

    @property
    def memory(self) -> int:
        """Return the bytes that a run may take: by site.yaml, or what the machine has."""
        return machine_memory() if (said := self.said_memory) is None else said

    def read_section(self, name: str, kind: TypeAdapter[Any], context: Any = None) -> Any:
        """Return the value of a key of site.yaml, None where there is none; refused with every fault that is found in it."""
        return read_section(self.home / FILE, name, kind, context)

    @property
    def engine(self) -> str:
        """Return what counts records in their source, for methods that count."""
        return self._settings().engine

    def _settings(self) -> SiteSettings:
        """Return the settings in site.yaml, which may be left out."""
        return read_settings(self.home / FILE)

    def keyed_hash(self, content: bytes) -> str:
        """Return a hash of confidential content against which guesses can be tested only with the vault's key (HMAC-SHA256)."""
        return hmac.new(self._vault_key(), content, hashlib.sha256).hexdigest()

    def _vault_key(self) -> bytes:
        file = self.vault / "key"
        if not file.exists():
            make_vault(self.vault)
            if (self.vault / "registry.head").exists() or any(self.vault.glob("*.duckdb")):
                raise ReleasePipelineError(
                    "the vault's key is missing, and the vault is not new.", where=str(file), remedy="Restore it from a backup."
                )
            partial = file.with_name(f".key.{secrets.token_hex(4)}")
            with os.fdopen(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as new:
                new.write(secrets.token_bytes(_KEY_BYTES))
            try:
                os.link(partial, file)  # the first process sets the key; the others take it
            except FileExistsError:
                pass
            finally:
                partial.unlink()
        key = file.read_bytes()
        if len(key) != _KEY_BYTES:
            raise ReleasePipelineError("the vault's key is damaged.", where=str(file), remedy="Restore it from a backup.")
        return key


_NONE = "-"  # in place of the hash of no event


class _RegistryAnchor:
    """The registry's seals and its last event, under the vault's key: without it they cannot be forged."""

    def __init__(self, site: Site, file: Path | None = None) -> None:
        self._site = site
        self._file = site.vault / "registry.head" if file is None else file
        self._key: bytes | None = None

    def seal(self, digest: str) -> str:
        """See `store.registry.RegistryAnchor`."""
        if self._key is None:
            self._key = bytes.fromhex(self._site.keyed_hash(b"seals of the registry"))
        return hmac.digest(self._key, digest.encode(), "sha256").hex()

    def has_records(self) -> bool:
        """See `store.registry.RegistryAnchor`."""
        return any(self._site.vault.glob("*.duckdb")) or any(self._site.vault.glob("candidates/*/*/r*"))

    def read(self) -> tuple[int, str] | None:
        """Return number and hash, or None if none was ever recorded."""
        try:
            number, digest, seal = self._file.read_text(encoding="ascii").split()
            known = int(number), "" if digest == _NONE else digest
        except FileNotFoundError:
            return None
        except ValueError:
            known, seal = (0, ""), ""
        if not hmac.compare_digest(seal.encode(), self._seal(known).encode()):
            raise RegistryChanged(
                "what the vault knows of the registry was changed.", where=str(self._file), remedy="Restore it from a backup."
            )
        return known

    def write(self, number: int, digest: str) -> None:
        """Record number and hash of the last event."""
        make_vault(self._file.parent)
        with locked(self._file.parent):  # a server's lock ends with the commit, before this
            if (known := self.read()) is not None and known[0] > number:
                return  # another process has come further
            if known is not None and known[0] == number and digest and known[1] not in ("", digest):
                raise RegistryChanged(
                    f"the vault knows of another event {number} of the registry.",
                    where=str(self._file),
                    remedy="The server lost events: restore it, and then run again.",
                )
            partial = self._file.with_name(f".{self._file.name}.new")  # always the same: one at a time is here
            with os.fdopen(os.open(partial, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "w", encoding="ascii") as new:
                new.write(f"{number} {digest or _NONE} {self._seal((number, digest))}\n")
                new.flush()
                os.fsync(new.fileno())
            partial.replace(self._file)
            sync(self._file.parent)

    def _seal(self, known: tuple[int, str]) -> str:
        return self._site.keyed_hash(f"head of the registry: {known[0]} {known[1]}".encode())


class _OtherAnchor(_RegistryAnchor):
    """The anchor of a copy whose last event is not recorded."""

    def has_records(self) -> bool:
        return False

    def read(self) -> tuple[int, str] | None:
        return 0, BEGIN


def find_site(home: Path | None = None) -> Site:
    """Return the site at `home`, at RELEASE_PIPELINE_HOME, or here if there is a `policies/`."""
    named = home if home is not None else Path(os.environ[HOME]) if os.environ.get(HOME) else None
    folder = (named or Path()).resolve()
    if is_stopped(folder):
        raise StoreError(
            "a restore of this site is at work, or was stopped halfway.",
            where=str(folder),
            remedy="Run the same `release-pipeline restore` again: it puts back what was here, and does all. Nothing is lost.",
        )
    if not (folder / "policies").is_dir():
        how = "it has no folder 'policies'" if named else "this folder has no 'policies', and no site is named"
        raise WrongUsage(f"this is not a site: {how}.", where=str(folder), remedy=f"Name one with --home or {HOME}.")
    return Site(folder, dict(os.environ))


# The address of the site's desk, from `desk` in site.yaml: for the links in notices, and for login links.


SECTION = "desk"
_PORT = r"(?::[1-9][0-9]{0,4})?"
_ORIGIN = re.compile(rf"https://[a-z0-9](?:[a-z0-9.-]{{0,251}}[a-z0-9])?{_PORT}|http://(?:127\.0\.0\.1|localhost){_PORT}")
_REFUSAL = Say(
    "this is no address of the desk.",
    'As in "https://desk.example.org", with nothing behind it; by http this machine alone.',
)
DeskAddress: TypeAlias = Annotated[  # an address without https could be read, and changed, on its way
    StrictStr,
    meets(lambda text: _ORIGIN.fullmatch(text) is not None),
    _REFUSAL,
]


class _OfAddress(BaseModel):
    """The part of the section that is needed here: the rest is the desk's (`apps.desk.backend.people`)."""

    model_config = ConfigDict(extra="ignore")

    address: DeskAddress = ""


_SECTION: TypeAdapter[Any] = TypeAdapter(_OfAddress)


def read_desk_address(site: Site) -> str:
    """Return the address without anything behind it; the empty text where none is set."""
    said: _OfAddress | None = site.read_section(SECTION, _SECTION)
    return "" if said is None else said.address


def check_desk_address(text: str, *, where: str) -> str:
    """Return the address that somebody named; raises `WrongUsage` where site.yaml would not take it either."""
    address = text.removesuffix("/").lower()
    if _ORIGIN.fullmatch(address) is None:
        raise WrongUsage(_REFUSAL.what, where=where, remedy=_REFUSAL.remedy)
    return address
