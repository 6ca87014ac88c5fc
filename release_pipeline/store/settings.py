"""site.yaml: its keys as types, and sentences on what is wrong with it. The sections `spark`, `alerts`, `targets` and `desk`
have separate types, and are read where they are used.

No message repeats a value: it may be a secret.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias, cast, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    ModelWrapValidatorHandler,
    StrictBool,
    StrictStr,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import CoreSchema, ErrorDetails, InitErrorDetails, PydanticCustomError, core_schema

from release_pipeline.policy.loading.load import read_text
from release_pipeline.policy.loading.messages import raise_problems, suggest
from release_pipeline.policy.values.text import EMPTY, Document, Problem, read_yaml
from release_pipeline.policy.values.text import Path as Place
from release_pipeline.store.environment import LEAST, format_size, read_size
from release_pipeline.store.registry_server import split_address

FILE = "site.yaml"
Engine: TypeAlias = Literal["auto", "duckdb", "spark", "sql"]  # what counts records in their source
Looks: TypeAlias = Literal["allowed", "forbidden"]  # trials on confidential records, for parameters


def wrong(what: str, remedy: str = "") -> PydanticCustomError:
    """Return the error of a validator: what is wrong, and what to do."""
    return PydanticCustomError("wrong", "{what}", {"what": what, "remedy": remedy})


@dataclass(frozen=True, slots=True)
class Say:
    """The message about a value that a key does not take, unless its type raises another error (`wrong`)."""

    what: str
    remedy: str = ""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the type's schema, with this message for any value that it refuses."""
        return core_schema.no_info_wrap_validator_function(self._check, handler(source))

    def _check(self, value: Any, inner: Callable[[Any], Any]) -> Any:
        try:
            return inner(value)
        except ValidationError as error:
            inside = [_read_error(each) for each in error.errors(include_url=False) if each["type"] == "wrong"]
            raise _join(inside or [((), self.what, self.remedy)]) from None


class Settings(BaseModel):
    """Keys with values: no others are known. All faults are reported at once."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    mapping: ClassVar[tuple[str, str]] = ("this is no mapping.", "")  # the message where there is none

    @classmethod
    def find_faults(cls, said: Mapping[str, Any], context: Any) -> Iterator[Problem]:
        """Yield what is wrong with the combination of keys, also if single keys are wrong."""
        yield from ()

    @model_validator(mode="wrap")
    @classmethod
    def _tell_all(cls, content: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Self:
        if not isinstance(content, dict):
            raise wrong(*cls.mapping)
        made: Self | None = None
        problems: list[Problem] = []
        try:
            made = handler(content)
        except ValidationError as error:
            problems = [cls._explain(each) for each in error.errors(include_url=False)]
        problems += cls.find_faults(cast("dict[str, Any]", content), info.context)
        if made is None or problems:
            raise _join(problems)
        return made

    @classmethod
    def _explain(cls, error: ErrorDetails) -> Problem:
        name = str(error["loc"][0]) if len(error["loc"]) == 1 else ""
        if error["type"] == "extra_forbidden" and name:
            key, colon, _ = name.partition(":")  # where a space is missing, a secret may be a part of the key
            if colon:
                return (), f"a space is missing behind '{key}:'.", ""
            known = [field.alias or each for each, field in cls.model_fields.items()]
            return (name,), f"'{name}' is not known here.", suggest(name, known)
        if error["type"] == "missing" and name:
            field = next(field for each, field in cls.model_fields.items() if (field.alias or each) == name)
            remedy = next((part.remedy for part in field.metadata if isinstance(part, Say)), "")
            return (), f"'{name}' is missing.", remedy or cls.mapping[1]
        return _read_error(error)


def _join(problems: Iterable[Problem]) -> ValidationError:
    lines = [InitErrorDetails(type=wrong(what, remedy), loc=place, input=None) for place, what, remedy in problems]
    return ValidationError.from_exception_data("settings", lines)


def _read_error(error: ErrorDetails) -> Problem:
    place: Place = tuple(step for step in error["loc"] if step != "[key]")
    context: Mapping[str, str] = error.get("ctx", {}) if error["type"] == "wrong" else {}
    return place, context.get("what", "this is not as it should be."), context.get("remedy", "")


def is_text(value: Any) -> bool:
    """Return whether a value is a text of one line that is not blank."""
    return isinstance(value, str) and bool(value.strip()) and value.isprintable()


def meets(condition: Callable[[Any], bool]) -> AfterValidator:
    """Return a validator that refuses what does not meet a condition."""

    def check(value: Any) -> Any:
        if not condition(value):
            raise ValueError
        return value

    return AfterValidator(check)


def _as_in(name: str, example: str) -> Say:
    return Say(f"{name} is not said as it should be.", f"Say it as in: {example}.")


def _one_of(name: str, kind: Any) -> Say:
    return Say(f"{name} is not said as it should be.", f"Allowed: {', '.join(get_args(kind))}.")


Registry: TypeAlias = Annotated[
    StrictStr,
    meets(lambda text: split_address(text) is not None),
    Say(
        "registry is no address of a Postgres server, or has its password in it.",
        "Say it as in postgresql://ledger:${LEDGER_PASSWORD}@db.example.org/ledger, or with ${file:/FILE}.",
    ),
]
Section: TypeAlias = dict[str, Any] | None  # empty where every line below it is commented out


class SiteSettings(Settings):
    """The settings in site.yaml."""

    mapping: ClassVar[tuple[str, str]] = ("settings are keys with values.", "As in: memory: 8 GiB.")

    officer: Annotated[StrictStr, _as_in("officer", "officer: FINGERPRINT")] | None = None
    service_key: Annotated[StrictStr, _as_in("service_key", "service_key: FILE")] | None = None
    internal_metrics_in_ui: Annotated[StrictBool, _as_in("internal_metrics_in_ui", "internal_metrics_in_ui: true")] = False
    looks: Annotated[Looks, _one_of("looks", Looks)] = "allowed"
    memory: (
        Annotated[
            StrictStr,
            meets(lambda text: (read_size(text) or 0) >= LEAST),
            Say(f"memory is no size of {format_size(LEAST)} or more.", "Say it as in 8 GiB or 400 MB."),
        ]
        | None
    ) = None
    engine: Annotated[Engine, _one_of("engine", Engine)] = "auto"
    spark: Annotated[Section, _as_in("spark", "spark: {url: 'sc://spark.example.org:15002'}")] = None
    registry: Registry | None = None
    alerts: Annotated[list[Any] | None, _as_in("alerts", "a list, each {on: [blocked], webhook: '${ALERTS_URL}'}")] = None
    targets: Annotated[Section, _as_in("targets", "targets: {NAME: {to: FOLDER or ADDRESS}}")] = None
    desk: Annotated[Section, _as_in("desk", "desk: {people: {NAME: [auditor]}}")] = None


_SITE, _REGISTRY = TypeAdapter(SiteSettings), TypeAdapter[str](Registry)


def read_document(file: Path) -> Document | None:
    """Return the content of the file, with the place of every key; None where it is left out or empty."""
    if not file.is_file():
        return None
    document = read_yaml(read_text(file))
    if [what for _, what, _ in document.problems] == [EMPTY]:
        return None
    if document.problems:
        raise_problems(document, document.problems, str(file), what="file")
    return document


def read_settings(file: Path) -> SiteSettings:
    """Return the settings of the file; refused with every fault, its line, and the valid values there."""
    document = read_document(file)
    return SiteSettings() if document is None else read_as_said(document, _SITE, file=file)


def read_registry(file: Path) -> str | None:
    """Return the address of the registry's server, if the file names one, also if other keys are wrong. The file is parsed only
    if the word is in it, since a run opens the registry often."""
    named = file.is_file() and "registry" in read_text(file)
    return read_section(file, "registry", _REGISTRY) if named else None


def read_section(file: Path, name: str, kind: TypeAdapter[Any], context: Any = None) -> Any:
    """Return the value of a key of the file, None where there is none; refused with every fault, and its line. `context`: what
    `find_faults` asks."""
    document = read_document(file)
    settings: Any = None if document is None else document.value
    if document is None or not isinstance(settings, dict) or cast("dict[str, Any]", settings).get(name) is None:
        return None
    return read_as_said(document, kind, file=file, section=name, context=context)


def read_as_said(document: Document, kind: TypeAdapter[Any], *, file: Path, section: str = "", context: Any = None) -> Any:
    """Return a file's content, or a section of it, as that type."""
    value: Any = document.value
    path: Place = (section,) if section else ()
    try:
        return kind.validate_python(value[section] if section else value, context=context)
    except ValidationError as error:
        found = [_read_error(each) for each in error.errors(include_url=False)]
        problems: list[Problem] = [((*path, *at), what, remedy) for at, what, remedy in found]
    return raise_problems(document, problems, str(file), what="file")
