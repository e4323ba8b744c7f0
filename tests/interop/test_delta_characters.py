"""Characters beyond U+FFFF in names of columns and in paths, which a log of Delta Lake may spell as two escapes, in JSON inside of JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pageseek as ps
from pageseek.datasets.delta_text import in_full
from support.delta_logs import MAPPING, Log, field

deltalake = pytest.importorskip("deltalake", reason="pip install 'pageseek[delta]'")

CHARACTERS = ["é", "\U0001f600", "\U00020000", "\U0002f800", "\U0010ffff", "\U00010000\U00020000"]


def table(
    root: Path, text: str, mode: str, partition: bool, inside: bool, outside: bool
) -> tuple[str, list[dict[str, Any]]]:
    """A table with a text in all its names, and its rows. `inside`, `outside`: its schema, and its commits, have ASCII alone."""

    def own(number: int) -> dict[str, Any]:
        told = {f"{MAPPING}.id": number, f"{MAPPING}.physicalName": f"{number}{text}"}
        return {} if mode == "none" else told

    name, inner, part = (
        one + text if mode == "none" else f"{number}{text}"
        for one, number in (("c", 1), ("x", 3), ("p", 4))
    )
    struct = {"type": "struct", "fields": [field(f"x{text}", "long", **own(3))]}
    fields = [field(f"c{text}", "long", **own(1)), field("s", struct, **own(2))]
    if partition:
        fields.append(field(f"p{text}", "string", **own(4)))
    log = Log(
        root, fields, [f"p{text}"] if partition else [], ["columnMapping"] if mode != "none" else [], {f"{MAPPING}.mode": mode},
        in_ascii=(inside, outside),
    )  # fmt: skip
    rows = []
    for i in range(2):
        data = pa.table({name: [i], "s" if mode == "none" else f"2{text}": [{inner: 7 * i}]})
        stats = {"numRecords": 1, "minValues": {name: i}, "maxValues": {name: i}, "nullCount": {name: 0}}  # fmt: skip
        values = {part: text} if partition else {}
        log.add(f"{text}{i}.parquet", data, values, stats, ascii_alone=outside)
        row: dict[str, Any] = {f"c{text}": i, "s": {f"x{text}": 7 * i}}
        rows.append(row | ({f"p{text}": text} if partition else {}))
    return str(root), rows


@pytest.mark.covering(2)
@pytest.mark.parametrize("text", CHARACTERS)
@pytest.mark.parametrize("mode", ["none", "name"])
@pytest.mark.parametrize("partition", [False, True])
@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.parametrize("folder", ["t", "a t é", None])
def test_names_and_paths(
    tmp_path: Path,
    text: str,
    mode: str,
    partition: bool,
    inside: bool,
    outside: bool,
    folder: str | None,
) -> None:
    at, rows = table(tmp_path / (folder or "t"), text, mode, partition, inside, outside)
    source: Any = at
    if folder is None:
        if (
            partition
            and inside
            and outside
            and any(ord(one) >> 16 in range(2, 17, 2) for one in text)
        ):
            with pytest.raises(Exception, match="not found in schema"):
                deltalake.DeltaTable(at)
            return
        source = deltalake.DeltaTable(at)
    scan = ps.scan(source)
    assert sorted(scan.to_pylist(), key=str) == sorted(rows, key=str)
    for name in (f"c{text}", f"s.x{text}"):
        report = scan.filter(ps.col(name) > 0).explain(analyze=True).to_dict()
        assert report["rows"]["out"] == 1
    assert scan.filter(ps.col(f"c{text}") > 0).to_pylist() == rows[1:]
    if partition:
        assert scan.filter(ps.col(f"p{text}") == text).count_rows() == 2


def test_escapes_that_are_one_character() -> None:
    for text in (
        "\U00020000",
        "a\U0001f600\U0010ffff\\b",
        '\\u"\U00020000\\',
        "\\ud840\\udc00",
        "é\n\t/",
    ):
        for ascii_alone in (True, False):
            data = json.dumps(
                {"a": json.dumps(text), text: text}, ensure_ascii=ascii_alone
            ).encode()
            found = in_full(data)
            assert json.loads(found) == json.loads(data)
    lone = rb'"\ud840 \udc00\ud840\u0041\\\ud840\udc00"'
    assert in_full(lone) == rb'"\ud840 \udc00\ud840\u0041\\' + "\U00020000".encode() + b'"'
    assert in_full(rb'"\uD83D\uDE00"') == '"\U0001f600"'.encode()
