"""What a codebook says of the columns of a source: their labels, units and questions, and what their codes mean; and of the data
as a whole, where it does. It is documentation and no data, yet whoever sends it may be careless or hostile: it is read within
bounds, and no message quotes more of it than names of columns.

Three kinds, a reader each in `codebooks`: CSV, DDI-Codebook as archives of surveys give it out, and the JSON of a data package or
of a table schema.
"""

from __future__ import annotations

from pathlib import Path

from release_pipeline.errors import SourceError
from release_pipeline.flow.codebooks.common import AGAIN, Codebook
from release_pipeline.flow.codebooks.ddi import read_ddi
from release_pipeline.flow.codebooks.package import read_package
from release_pipeline.flow.codebooks.rows import read_rows
from release_pipeline.plain_files import open_plain, read_at_most

_MOST_BYTES = 64 << 20


def read_codebook(file: Path) -> Codebook:
    """What a codebook describes."""
    try:
        content = read_at_most(open_plain(file), _MOST_BYTES)
    except OSError as error:
        raise SourceError(f"the codebook cannot be read: {error.strerror}.", where=str(file), remedy="Check the path.") from None
    if content is None:
        raise SourceError(f"the codebook has more than {_MOST_BYTES >> 20} MiB.", where=str(file), remedy=AGAIN)
    readers = {".xml": read_ddi, ".json": read_package, ".csv": read_rows, ".tsv": read_rows}
    read = readers.get(file.suffix.lower())
    if read is None:
        what = "a codebook is .csv or, of DDI, .xml or, of a data package or table schema, .json."
        raise SourceError(what, where=str(file), remedy="Convert or rename it.")
    return read(content, str(file))
