"""Rows of a Parquet file, batch by batch, as plain JSON values."""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from parsyn.rows.json_rows import Numbered, row_too_large
from parsyn.rows.json_values import Values
from parsyn.rows.problems import BadRow, Limits, ProblemCode, UnusableFile
from parsyn.rows.streams import open_stream
from parsyn.wire.states import Compression

_BATCH_ROWS = 64
# A compressed Parquet file (Parquet compresses its own pages) has to be held to be read.
_HELD_BYTES = 256 << 20


def read_parquet(path: Path, compression: Compression, limits: Limits) -> Iterator[Numbered]:
    """(row, None, values or what is wrong): Parquet has no lines."""
    import pyarrow as pa

    row = 0
    try:
        for batch in _batches(path, compression, limits):
            for values in _batch_rows(batch, limits):
                row += 1
                yield row, None, values
    except MemoryError as error:
        raise UnusableFile(
            ProblemCode.ROW_TOO_LARGE,
            "A part of the Parquet file does not fit in memory. Write it with smaller row groups.",
            row=row + 1,
        ) from error
    except (pa.ArrowException, OSError, RecursionError, ValueError, OverflowError) as error:
        raise UnusableFile(
            ProblemCode.DAMAGED_FILE,
            "The Parquet file is damaged or uses what the reader does not know. "
            "Write it again and upload it once more.",
            row=row + 1,
        ) from error


def _batches(path: Path, compression: Compression, limits: Limits) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    source: Any = str(path)
    if compression is not Compression.NONE:
        held = Limits(min(limits.total_bytes, _HELD_BYTES), limits.row_bytes, limits.depth)
        with open_stream(path, compression, held) as stream:
            source = pa.BufferReader(stream.read())
    # Threads and prefetching have aborted at interpreter exit; reading without them has not.
    with pq.ParquetFile(source, pre_buffer=False, buffer_size=1 << 20) as file:
        _refuse_bomb(file.metadata, limits)
        yield from file.iter_batches(batch_size=_BATCH_ROWS, use_threads=False)


def _refuse_bomb(metadata: Any, limits: Limits) -> None:
    groups = range(metadata.num_row_groups)
    size = sum(metadata.row_group(group).total_byte_size for group in groups)
    if size > limits.total_bytes:
        raise UnusableFile(
            ProblemCode.FILE_TOO_LARGE,
            f"The file holds {size:,} bytes once decompressed, over the limit of "
            f"{limits.total_bytes:,}. Split it into smaller files.",
        )


def _batch_rows(batch: Any, limits: Limits) -> Iterator[Values | BadRow]:
    if batch.nbytes > limits.row_bytes:
        for place in range(batch.num_rows):
            one = batch.slice(place, 1)
            yield row_too_large(limits.row_bytes) if one.nbytes > limits.row_bytes else _row(one)
        return
    try:
        rows = batch.to_pylist()
    except UnicodeDecodeError:
        yield from (_row(batch.slice(place, 1)) for place in range(batch.num_rows))
        return
    yield from map(_plain_row, rows)


def _row(one: Any) -> Values | BadRow:
    try:
        return _plain_row(one.to_pylist()[0])
    except UnicodeDecodeError:
        return BadRow(
            ProblemCode.WRONG_ENCODING,
            "A string in this row is not UTF-8. Write the file again with UTF-8 strings.",
        )


def _plain_row(row: dict[str, Any]) -> Values | BadRow:
    column = None
    values: Values = {}
    try:
        for column, value in row.items():
            values[column] = value if type(value) in (str, int, bool) else _plain(value)
    except BadRow as bad:
        return BadRow(bad.code, bad.message, column)
    return values


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return _finite(value)
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, decimal.Decimal | datetime.timedelta):
        return str(value)
    raise BadRow(
        ProblemCode.WRONG_TYPE,
        f"The column holds {type(value).__name__} values, which are neither text nor numbers. "
        "Leave the column out or write it as text.",
    )


def _finite(number: float) -> float | None:
    if math.isinf(number):
        raise BadRow(
            ProblemCode.NON_FINITE_NUMBER, "The number is infinite. Write null in its place."
        )
    # pandas writes a missing number as NaN.
    return None if math.isnan(number) else number
