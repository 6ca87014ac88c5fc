"""The reader of Stata, SPSS and SAS files: a separate program, `python -m release_pipeline.store.survey_reader`.

The parser behind pyreadstat is C, and some damaged files end its process. So it has this separate one: it gets a request on its
standard input, and answers with facts as JSON or with records as an Arrow stream of texts, each entry as the file has it, a code
and never its label. An error is one number, its exit code: messages of libraries may quote cells.
"""

from __future__ import annotations

import errno
import json
import os
import resource
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

# Exit codes; the words for them are `survey_files`'s.
NO_READER, DAMAGED, ENCODING, DATES, MEMORY, SHORT, SEVERAL, SAME_NAMES = range(10, 18)

ENDINGS = (".dta", ".sav", ".zsav", ".sas7bdat", ".xpt")
_CELLS = 2_000_000  # in memory at once
_ROWS = 400_000
_MEMORY = 4 << 30  # bytes of address space: an excessive request of a damaged header ends here
_HEADER_SECONDS = 120  # of a processor: longer means an endless header
_XPORT_LINE = 80
_XPORT_MEMBERS = (b"HEADER RECORD*******MEMBER  HEADER RECORD!!!!!!!", b"HEADER RECORD*******MEMBV8  HEADER RECORD!!!!!!!")

Read: TypeAlias = Callable[..., tuple[Mapping[str, Sequence[Any]], Any]]


class _Refused(Exception):
    """An error, as an exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def main() -> int:
    """Answer the request on standard input; returns the exit code."""
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # against anything that a library prints
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core has cells
    _limit(resource.RLIMIT_AS, _MEMORY)
    warnings.simplefilter("ignore")
    request: dict[str, Any] = json.load(sys.stdin)
    if request["columns"] is None:
        _limit(resource.RLIMIT_CPU, _HEADER_SECONDS)
    try:
        _answer(request, answer)
        answer.close()
    except _Refused as refused:
        return refused.code
    except ImportError:
        return NO_READER
    except UnicodeError:
        return ENCODING
    except OverflowError:
        return DATES
    except MemoryError:
        return MEMORY
    except Exception as error:
        return 0 if getattr(error, "errno", None) == errno.EPIPE else DAMAGED  # the receiver has stopped, and knows why
    return 0


def _limit(what: int, amount: int) -> None:
    now, most = resource.getrlimit(what)
    resource.setrlimit(what, (amount if now == resource.RLIM_INFINITY else min(amount, now), most))


def _answer(request: Mapping[str, Any], answer: BinaryIO) -> None:
    path, ending = str(request["path"]), str(request["ending"])
    read = _find_reader(path, ending)
    if ending == ".xpt":
        _check_transport(Path(path))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        _, known = read(metadataonly=True)
    if any("duplicated" in str(warning.message) for warning in warned):  # the library renames one of them
        raise _Refused(SAME_NAMES)
    if request["columns"] is None:
        told = {"label": str(known.file_label or ""), "columns": [_describe(known, name) for name in known.column_names]}
        answer.write(json.dumps(told).encode())
        return
    _write_records(read, known, request["columns"], answer)


def _find_reader(path: str, ending: str) -> Read:
    """Return the function that reads this kind of file: user-defined missing entries as they are, dates as dates."""
    import pyreadstat
    from pyreadstat.pyreadstat import parser_entry_point

    plain: Read = {
        ".dta": pyreadstat.read_dta,
        ".sav": pyreadstat.read_sav,
        ".zsav": pyreadstat.read_sav,
        ".sas7bdat": pyreadstat.read_sas7bdat,
        ".xpt": partial(parser_entry_point, parser_format="xport"),  # `read_xport` has no `user_missing`: .A would be blank
    }[ending]

    def read(**options: Any) -> tuple[Mapping[str, Sequence[Any]], Any]:
        return plain(path, user_missing=True, output_format="dict", **options)

    return read


def _check_transport(path: Path) -> None:
    """Refuse a transport file that ends within a line, since it has no count of its records, or that has several tables."""
    if path.stat().st_size % _XPORT_LINE:
        raise _Refused(SHORT)
    members = 0
    with path.open("rb") as file:
        while block := file.read(_XPORT_LINE << 14):
            members += sum(block.count(text) for text in _XPORT_MEMBERS)
    if members > 1:
        raise _Refused(SEVERAL)


def _write_records(read: Read, known: Any, columns: Sequence[str], answer: BinaryIO) -> None:
    import pyarrow as pa

    schema = pa.schema([(name, pa.string()) for name in columns])
    with pa.ipc.new_stream(answer, schema) as stream:
        for chunk in _read_chunks(read, known, columns):
            arrays = [_as_text(chunk[name], str(known.readstat_variable_types[name])) for name in columns]
            stream.write_batch(pa.record_batch(arrays, schema=schema))


def _read_chunks(read: Read, known: Any, columns: Sequence[str]) -> Iterator[Mapping[str, Sequence[Any]]]:
    """Yield the records, some at a time, in order; refused where there are fewer than the file says."""
    rows = max(1, min(_ROWS, _CELLS // len(columns)))
    declared = known.number_rows if isinstance(known.number_rows, int) and known.number_rows >= 0 else None
    done = 0
    while declared is None or done < declared:
        chunk, _ = read(usecols=list(columns), row_offset=done, row_limit=rows, **_list_formats(known))
        count = len(chunk[columns[0]]) if chunk else 0
        if count:
            yield chunk
        done += count
        if count < rows:
            break
    if declared is not None and done != declared:
        raise _Refused(SHORT)


def _list_formats(known: Any) -> dict[str, list[str]]:
    """Return the formats of Stata that show days and moments, however they write them."""
    formats = {str(name) for name in known.original_variable_types.values() if str(name).startswith("%")}
    days = sorted(name for name in formats if name.lstrip("%-").startswith(("td", "d")))
    moments = sorted(name for name in formats if name.lstrip("%-").startswith(("tc", "tC")) and not name.startswith("%tcHH"))
    return {"extra_date_formats": days, "extra_datetime_formats": moments} if formats else {}


def _as_text(values: Sequence[Any], kind: str) -> Any:
    """Return a column as the texts that a CSV would have; a tagged missing entry is a point and its letter."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if kind == "string":
        return pa.array([value or None for value in values], pa.string())  # these files know no other missing text
    try:
        return _write_numbers(pa.array(values, pa.float64()), narrow=kind == "float")
    except (pa.ArrowInvalid, pa.ArrowTypeError):  # another type is among them
        pass
    others = [None if value is None or isinstance(value, int | float) else _write_other(value) for value in values]
    numbers = pa.array([value if isinstance(value, int | float) else None for value in values], pa.float64())
    return pc.coalesce(pa.array(others, pa.string()), _write_numbers(numbers, narrow=kind == "float"))


def _write_other(value: Any) -> str:
    """Return the text of an entry among numbers that is none: a letter of Stata or SAS, a day, a moment, a time."""
    if isinstance(value, str):
        return f".{value}"
    return str(value.isoformat(sep=" ") if hasattr(value, "year") and hasattr(value, "hour") else value.isoformat())


def _write_numbers(numbers: Any, *, narrow: bool) -> Any:
    """Return the numbers as texts: whole ones without a point; others with as few digits as distinguish them from their
    neighbours, of four bytes where they are `narrow`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    whole = pc.and_(pc.equal(pc.floor(numbers), numbers), pc.less(pc.abs(numbers), 2.0**63))
    integers = pc.cast(pc.cast(pc.if_else(whole, numbers, None), pa.int64()), pa.string())
    others = pc.cast(pc.if_else(whole, None, numbers), pa.float32() if narrow else pa.float64(), safe=False)
    return pc.coalesce(integers, pc.cast(others, pa.string()))


def _describe(known: Any, name: str) -> dict[str, Any]:
    """Return a column with its labels: of the file, and of no record."""
    is_text = str(known.readstat_variable_types[name]) == "string"
    labels: Mapping[Any, Any] = known.variable_value_labels.get(name) or {}
    missing: Sequence[Mapping[str, Any]] = known.missing_ranges.get(name) or ()

    def code(value: Any) -> str:
        return str(value) if is_text else str(_as_text([value], "double")[0].as_py())

    return {
        "name": name,
        "is_text": is_text,
        "label": str(known.column_names_to_labels.get(name) or ""),
        "labels": [[code(value), str(label)] for value, label in labels.items()],
        "missing": [[code(interval["lo"]), code(interval["hi"])] for interval in missing],
    }


if __name__ == "__main__":
    sys.exit(main())
