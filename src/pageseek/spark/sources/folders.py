"""The types and values of folders such as `k=1.5`, as Spark infers them; and the names and places of their columns."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa

from pageseek.predicate import iso8601 as iso
from pageseek.scanning.queries.scan import Scan
from pageseek.spark.columns.types import TIME_SETTING
from pageseek.spark.filters.dialect import MAX_DIGITS, to_micros
from pageseek.spark.session.one_spelling import names_of_first, unified_scan
from pageseek.spark.session.settings import Settings
from pageseek.spark.session.zone import SessionZone
from pageseek.storage import Sources
from pageseek.storage.hive import Inference, Partitions, Types, Unquoted

_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_DOUBLE = re.compile(rf"\s*([+-]?NaN|[+-]?Infinity|{_NUMBER.pattern}[fFdD]?)\s*")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_LOOSE_DATE = re.compile(
    r"\s*(\d{4})(?:-(\d{1,2}))?\s*|\s*(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T].*|\s*)",
    re.ASCII | re.DOTALL,
)
_LOOSE_MOMENT = re.compile(
    r"\s*(\d{4})-(\d{1,2})-(\d{1,2})[ T](\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?\s*(Z|UTC|[+-]\d{2}(?::?\d{2})?)?)?)?\s*",
    re.ASCII,
)
_TIMESTAMP = re.compile(rf"{_DATE.pattern} [0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}(\.[0-9])?")
_TIME = re.compile(r"[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?")
_INFERENCE = "spark.sql.sources.partitionColumnTypeInference.enabled"
INT, LONG, DOUBLE, DATE = pa.int32(), pa.int64(), pa.float64(), pa.date32()
TIME = pa.time64("ns")
Parse = Callable[[str], Any]


def inference(settings: Settings, given: Types | None) -> Inference:
    """How the types of folders are inferred in a session. `given`: types of some of them, which stay."""
    session = _Session(settings)
    return Inference(given, session.typed, session.value, settings.folded)


class _Session:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def typed(self, texts: Sequence[str]) -> tuple[pa.DataType, list[Any]]:
        """The type of a column of folders, and the values of its texts."""
        if not texts:  # void in Spark
            return pa.null(), []
        if not self._settings.is_true(_INFERENCE, "true"):
            return pa.string(), list(texts)
        kind: pa.DataType | None = None
        for text in texts:
            one = self._type(text)
            kind = one if kind is None else _wider(kind, one)
        assert kind is not None
        parse = self._parser(kind)
        return kind, [parse(text) for text in texts]

    def value(self, text: str, kind: pa.DataType) -> Any:
        """The value of a text for a type that was given, where Spark casts otherwise than Arrow; the text itself elsewhere.

        Raises
        ------
        ValueError
            It has none.
        """
        t = pa.types
        if t.is_date(kind):
            return _date_cast(text.raw if isinstance(text, Unquoted) else text)
        if t.is_timestamp(kind):
            moment = _moment_cast(text)
            if kind.tz is None:  # Spark leaves out a zone
                return moment.replace(tzinfo=None)
            return moment if moment.tzinfo is not None else self._zone.instant(moment)
        if t.is_binary(kind) and isinstance(text, Unquoted):
            return text.raw.encode()
        return text

    @property
    def _zone(self) -> SessionZone:
        return SessionZone(self._settings)

    def _type(self, text: str) -> pa.DataType:
        """The type of one text. Spark takes codes such as `%31` for the signs they stand for in times and strings only."""
        raw = text.raw if isinstance(text, Unquoted) else text
        if _INTEGER.fullmatch(raw):
            bits = (int(raw) + (int(raw) < 0)).bit_length()
            if bits < 64:
                return INT if bits < 32 else LONG
        if _NUMBER.fullmatch(raw):
            number = Decimal(raw)
            exponent = number.as_tuple().exponent
            assert isinstance(exponent, int)
            if exponent >= 0:
                digits = max(number.adjusted() + 1, 1)
                if digits <= MAX_DIGITS:
                    return pa.decimal128(digits, 0)
        if _DOUBLE.fullmatch(raw):
            return DOUBLE
        for said, pattern, kind, parse in (
            (text, _TIMESTAMP, self._timestamp, _moment),
            (raw, _DATE, DATE, dt.date.fromisoformat),
            (text, _TIME, TIME if self._settings.is_true(TIME_SETTING) else pa.string(), _time),
        ):
            if pattern.fullmatch(said):
                try:
                    parse(said)
                except ValueError:
                    return pa.string()
                return kind
        return pa.string()

    @property
    def _timestamp(self) -> pa.DataType:
        said = self._settings.get("spark.sql.timestampType", "TIMESTAMP_LTZ")
        return pa.timestamp("us", None if said == "TIMESTAMP_NTZ" else "UTC")

    def _parser(self, kind: pa.DataType) -> Parse:
        t = pa.types
        if t.is_integer(kind):
            return int
        if t.is_floating(kind):
            return lambda text: float(text.strip().rstrip("fFdD"))
        if t.is_decimal(kind):
            return Decimal
        if t.is_date(kind):
            return dt.date.fromisoformat
        if t.is_time(kind):
            return _time
        if t.is_timestamp(kind):
            zone = self._zone
            return _moment if kind.tz is None else lambda text: zone.instant(_moment(text))
        return str


def _date_cast(text: str) -> dt.date:
    """The date that a text begins with, by Spark's cast."""
    found = _LOOSE_DATE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no date")
    parts = found.groups()
    year, month, day = (*parts[:2], None) if parts[0] else parts[2:]
    return dt.date(int(year or 0), int(month or 1), int(day or 1))


def _moment_cast(text: str) -> dt.datetime:
    """The time of a text by Spark's cast: of a date it is midnight. It has a zone where the text has one."""
    found = _LOOSE_MOMENT.fullmatch(text)
    if found is None:
        if len(text.split()) > 1 or "T" in text:
            raise ValueError(f"{text!r} is no timestamp")
        return dt.datetime.combine(_date_cast(text), dt.time())
    *parts, fraction, zone = found.groups()
    year, month, day, hour, minute, second = (int(part or 0) for part in parts)
    spelled = f"{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"
    made: dt.datetime = to_micros(iso.timestamp(f"{spelled}.{(fraction or '0')[:9]}{zone or ''}"))
    return made


def _moment(text: str) -> dt.datetime:
    """A date, or a date and a time, as a time without a zone."""
    return dt.datetime.fromisoformat(text)


def _time(text: str) -> dt.time:
    return dt.time.fromisoformat(text)


def _wider(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The type for the values of both; text if there is none."""
    t = pa.types
    if one == other:
        return one
    both = {one, other}
    if both == {INT, LONG}:
        return LONG
    if both == {INT, DOUBLE}:
        return DOUBLE
    stamps = [kind for kind in both if t.is_timestamp(kind)]
    if DATE in both and stamps:
        return stamps[0]
    digits = [_digits(kind) for kind in both]
    if all(digits):
        return pa.decimal128(max(digits), 0)
    return pa.string()


def _digits(kind: pa.DataType) -> int:
    if pa.types.is_decimal(kind):
        return int(kind.precision)
    return {INT: 10, LONG: 20}.get(kind, 0)


def named_otherwise(scan: Scan, spelling: pa.Schema | None, settings: Settings) -> dict[str, str]:
    """Columns of folders or of a table -> what they are called, where that differs in case and case does not matter."""
    schema = scan._request.dataset_schema
    if spelling is None or schema is None or schema.fields:
        return {}
    wanted = {name.lower(): name for name in spelling.names}
    names = [*schema.folders.names, *(schema.given.names if schema.given is not None else ())]
    found = {n: wanted[n.lower()] for n in names if wanted.get(n.lower(), n) != n}
    return {} if found and settings.case_sensitive else found


def with_names(scan: Scan, names: Mapping[str, str]) -> Scan:
    """The scan with other names for columns of its folders, and of its schema."""
    request = scan._request
    schema = request.dataset_schema
    assert schema is not None
    known: dict[Partitions, Partitions] = {}  # files of one folder share one tuple
    sources = []
    for source in scan.sources:
        own = source.partitions
        if own not in known:
            known[own] = tuple([(names.get(name, name), value) for name, value in own])
        sources.append(replace(source, partitions=known[own]))
    folders = _renamed(schema.folders, names)
    given = None if schema.given is None else _renamed(schema.given, names)
    request = replace(request, dataset_schema=replace(schema, folders=folders, given=given))
    return replace(scan, _sources=Sources.of(sources), _request=request)


def _renamed(schema: pa.Schema, names: Mapping[str, str]) -> pa.Schema:
    return pa.schema([f.with_name(names.get(f.name, f.name)) for f in schema], schema.metadata)


def overlaid(scan: Scan, settings: Settings) -> Scan:
    """The scan with columns of folders at the places of those columns of the first file that they stand for, as Spark has them."""
    request, sources = scan._request, scan.sources
    schema = request.dataset_schema
    if schema is None or schema.given is not None or request.columns is not None or not sources:
        return scan
    folders = {settings.folded(name): name for name in schema.folders.names}
    if not folders:
        return scan
    own = names_of_first(scan)
    if not any(settings.folded(name) in folders for name in own):
        return scan
    scan = unified_scan(scan, scan.schema)
    placed = [folders.get(settings.folded(name), name) for name in own]
    others = [folders.get(settings.folded(name), name) for name in scan.schema.names]
    return scan.select(list(dict.fromkeys([*placed, *others])))
