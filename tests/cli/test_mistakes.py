"""The likeliest mistakes of a user: each message names the mistake and the place, and a remedy in the words of the one who reads it."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.cli.main import _line
from pageseek.cli.wording import in_options
from pageseek.storage.obstore_faults import ADVICE
from pageseek.storage.retry import Fault, failed
from support.command import run

NOON = dt.datetime(2024, 1, 1, 12)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, which is the current one, with files that are right and wrong."""
    monkeypatch.chdir(tmp_path)
    table = pa.table(
        {
            "id": [1, 2], "name": ["a", "b"], "and": [1, 2], "day": [dt.date(2024, 1, 31)] * 2,
            "at": [{"depth": 1}, {"depth": 2}],
            "utc": pa.array([NOON] * 2, pa.timestamp("us", "UTC")), "local": [NOON] * 2,
        }
    )  # fmt: skip
    pq.write_table(table, "t.parquet")
    body = Path("t.parquet").read_bytes()
    Path("cut.parquet").write_bytes(body[: len(body) // 2])
    Path("empty.parquet").write_bytes(b"")
    Path("locked.parquet").write_bytes(body[:-4] + b"PARE")
    Path("a.csv").write_text("a,b\n1,2\n3,4\n")
    Path("texts").mkdir()
    Path("texts/a.csv").write_text("a,b\n1,2\n")
    return tmp_path


SAME: list[tuple[dict[str, Any], list[str], tuple[str, ...]]] = [
    ({"filter": "idd = 1"}, ["--where", "idd = 1"], ("no column 'idd'", "did you mean 'id'?", "  ^")),
    ({"filter": "ID = 1"}, ["--where", "ID = 1"], ("no column 'ID'", "did you mean 'id'?")),
    ({"columns": ["namee"]}, ["--columns", "namee"], ("no column 'namee'", "did you mean 'name'?")),
    ({"filter": "id = '1'"}, ["--where", "id = '1'"], ("write the number without quotes", "       ^")),
    ({"filter": "and = 1"}, ["--where", "and = 1"], ("filter: ", "not and", "  ^")),
    ({"filter": "id == = 3"}, ["--where", "id == = 3"], ("write a column or a value", "        ^")),
    ({"filter": "select * from t"}, ["--where", "select * from t"], ("without select",)),
    ({"filter": "id > 1 order by id"}, ["--where", "id > 1 order by id"], ("alone, without order",)),
    ({"filter": "id > 1 limit 3"}, ["--where", "id > 1 limit 3"], ("alone, without limit",)),
    ({"filter": "day = '31.1.2024'"}, ["--where", "day = '31.1.2024'"], ("date '2024-01-31'",)),
    ({"filter": "utc = timestamp '2024-01-01 12:00:00'"}, ["--where", "utc = timestamp '2024-01-01 12:00:00'"], ("give a value with a time zone",)),
    ({"filter": "id = nan"}, ["--where", "id = nan"], ("no column 'nan'", "NaN is tested by IS NAN")),
    ({"filter": "day > current_date"}, ["--where", "day > current_date"], ("no word for the present: write the day, such as date '2024-01-31'",)),
    ({"filter": "id = 5 + 1"}, ["--where", "id = 5 + 1"], ("'+': columns are compared as they are, without arithmetic", "         ^")),
    ({"filter": "id || 'x' = '1x'"}, ["--where", "id || 'x' = '1x'"], ("'||': columns are compared as they are, without joining texts", "     ^")),
    ({"filter": "id ~ '1'"}, ["--where", "id ~ '1'"], ("there are no regular expressions: write LIKE '%text%'", "     ^")),
    ({"filter": "id !~ '1'"}, ["--where", "id !~ '1'"], ("'!~': there are no regular expressions", "     ^")),
    ({"filter": "id = 1 and ~(id = 2)"}, ["--where", "id = 1 and ~(id = 2)"], ("'~': write NOT here",)),
    ({"filter": "~id = 1"}, ["--where", "~id = 1"], ("'~': write NOT here",)),
    ({"filter": "current_date > day"}, ["--where", "current_date > day"], ("no word for the present",)),
    ({"filter": "id::text = '1'"}, ["--where", "id::text = '1'"], ("'::': values are compared in the type of their column", "    ^")),
    ({"filter": "cast(id as text) = '1'"}, ["--where", "cast(id as text) = '1'"], ("cast: values are compared in the type of their column, without a cast",)),
    ({"filter": "id"}, ["--where", "id"], ("only booleans are true or false; compare the column with a value",)),
    ({"filter": "depth = 1"}, ["--where", "depth = 1"], ("no column 'depth'; did you mean 'at.depth'?",)),
    ({"filter": "local = '2024-01-01T12:00:00Z'"}, ["--where", "local = '2024-01-01T12:00:00Z'"], ("no time zone; give a value without one",)),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "options", "words"), SAME)
def test_mistakes_in_columns_and_filters(
    arguments: dict[str, Any], options: list[str], words: tuple[str, ...], here: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    with pytest.raises(ps.PredicateError) as caught:
        ps.read_table("t.parquet", **arguments)
    code, out, err = run(capsys, "scan", "t.parquet", *options)
    assert (code, out) == (1, "")
    for word in words:
        assert word in str(caught.value) and word in err, err
    # a list of columns helps where a column is not there
    assert ("pageseek schema FILE" in err) is ("no column" in err)


FILES = [
    ("t.parqet", FileNotFoundError, ("no such file; did you mean ", "t.parquet?")),
    ("nope/t.parquet", FileNotFoundError, ("no such file; there is no folder ",)),
    ("texts", FileNotFoundError, ("no .parquet file in this directory: 1 file", "1 with .csv")),
    ("a.csv", ps.CorruptFileError, ("not a Parquet file", "as CSV and JSON do")),
    ("cut.parquet", ps.CorruptFileError, ("cut.parquet: ends in ", "cut short")),
    ("empty.parquet", ps.CorruptFileError, ("empty.parquet: the file is empty",)),
    ("locked.parquet", ps.UnsupportedError, ("the footer is encrypted", "pyarrow reads them with the keys")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "kind", "words"), FILES)
def test_mistakes_in_files(
    name: str, kind: type[Exception], words: tuple[str, ...], here: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    with pytest.raises(kind) as caught:
        ps.read_table(name)
    code, out, err = run(capsys, "head", name)
    assert (code, out, err.count("\n")) == (1, "", 1)
    for word in words:
        assert word in str(caught.value) and word in err, err
    assert ("(write or copy the file again)" in err) is (name in ("cut.parquet", "empty.parquet"))
    assert "(check the path)" not in err
    assert "--columns" not in err


def test_mistakes_in_python(here: Path) -> None:
    column: Any = ps.col("id")
    wrong: list[tuple[Callable[[], object], type[Exception], str]] = [
        (lambda: ps.read_table("t.parquet", columnz=["id"]), TypeError, "did you mean columns=?"),  # type: ignore[call-arg]
        (lambda: 3 & column, ps.PredicateError, "write each condition in parentheses"),
        (lambda: column | (column < 3), ps.PredicateError, "write each condition in parentheses"),
        (lambda: ~column, ps.PredicateError, "write each condition in parentheses"),
        (lambda: column > 3 and column < 5, ps.PredicateError, "write & | ~ for and, or, not"),
        (lambda: ps.read_table("t.parquet", filter=ps.col("utc") == NOON), ps.PredicateError, "give a value with a time zone"),
        (lambda: ps.read_table("t.parquet", filter="id = 'x'"), ps.PredicateError, "t.parquet: column 'id' of type int64 cannot be compared with 'x'"),
        (lambda: ps.read_table("t.parquet", filter=ps.col("id").isin([1, "a"])), ps.PredicateError, "t.parquet: column 'id' of type int64"),
        (lambda: ps.scan("t.parquet").prepare("id = :k")("x"), ps.PredicateError, "t.parquet: column 'id' of type int64"),
        (lambda: ps.read_table("t.parquet", filter=ps.col("at") == ps.col("at")), ps.PredicateError, "t.parquet: at is nested"),
        (lambda: ps.read_table("t.parquet", filter="name = ?", params=[5]), ps.PredicateError, "give str, not int"),
        (lambda: ps.read_table("t.parquet", filter="id = ?", params=["x"]), ps.PredicateError, "give a number, not a str"),
        (lambda: ps.read_table("t.parquet", filter="id = :k", params={"k": "x"}), ps.PredicateError, "give a number, not a str"),
        (lambda: ps.read_table("t.parquet", filter="id = ?", params=[{"a": 1}]), ps.PredicateError, "the value of ? is a dict"),
        (lambda: ps.read_table("t.parquet", prune="page_index"), ps.PredicateError, "did you mean 'column_index'?"),
        (lambda: ps.scan("t.parquet").head(-1), ValueError, "head.-1.: give a number that is not negative"),
        (lambda: ps.rewrite("t.parquet", "new.parquet", sort_by="id desc"), ps.PredicateError, "write .'id', 'descending'. for that order"),
        (lambda: ps.read_table("file:///t.parquet", filesystem=pa.fs.LocalFileSystem()), ValueError, "a URL needs no filesystem="),
        (lambda: ps.read_table("http://"), ValueError, "^http://: empty host"),
        (lambda: ps.read_table("t.parquet", limit=-1), ValueError, "give a number that is not negative"),
    ]  # fmt: skip
    for work, kind, words in wrong:
        with pytest.raises(kind, match=words.replace("?", r"\?").replace("|", r"\|")):
            work()


def test_mistakes_in_outputs_and_rights(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    err = run(capsys, "scan", "t.parquet", "-o", "nope/x.csv")[2]
    assert err == "pageseek: nope/x.csv: there is no folder nope\n"
    err = run(capsys, "index", "attach", "t.parquet", "-o", "nope/x.parquet")[2]
    assert err == "pageseek: nope/x.parquet: there is no folder nope\n"
    assert run(capsys, "rewrite", "t.parquet", "-o", "nope/x.parquet")[2] == err
    if hasattr(os, "mkfifo"):
        os.mkfifo("pipe.png")
        for command in (["scan"], ["index", "attach"], ["index", "detach"], ["rewrite"]):
            for name in ("pipe.png", os.devnull):
                err = run(capsys, *command, "t.parquet", "-o", name)[2]
                assert (
                    "which is never replaced: name another file" in err and "--overwrite" not in err
                )
        err = run(capsys, "inspect", "t.parquet", "--plot", "pipe.png")[2]
        assert "which is never replaced: name another file" in err and "--overwrite" not in err
    denied = PermissionError(13, os.strerror(13), "secret.parquet")
    assert _line(denied, "head") == "secret.parquet: permission denied"


def test_what_the_user_wrote_is_not_put_in_other_words(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    err = run(capsys, "rewrite", "t.parquet", "--where", "id = 1", "-o", "x.parquet")[2]
    assert err.startswith("pageseek: --where chooses partitions of a table "), err
    odd = "name = 'where=  in_place=True' and sort_by= 1"
    for option in (["--where", odd], [f"--where={odd}"]):
        err = run(capsys, "count", "t.parquet", *option)[2]
        assert odd in err, err
    said = _line(ValueError(f"where={odd}: no; without where= overwrite=True"), "rewrite", [odd])
    assert said == f"--where {' '.join(odd.split())}: no; without --where --overwrite"
    err = run(capsys, "head", "overwrite=True/replace=True.parquet")[2]
    assert "overwrite=True/replace=True.parquet: no such file" in err, err


def test_names_with_line_breaks_stay_in_their_line(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pq.write_table(pa.table({"a\nb": [1, 2], "c": [1, 2]}), "n.parquet")
    code, out, _ = run(
        capsys, "index", "attach", "n.parquet", "-o", "m.parquet", "--lookup", "a\nb,c"
    )
    assert code == 0 and "  lookup      a\\nb  " in out and "  lookup      c     " in out, out
    out = run(capsys, "index", "attach", "n*.parquet", "--in-place", "--bitmap", "a\nb,c")[1]
    assert "  bitmap      a\\nb  1 chunk in 1 file\n" in out, out
    out = run(capsys, "index", "detach", "m.parquet", "--in-place")[1]
    assert "a\\nb  " in out and all(line.startswith(("m.", "/", "  ")) for line in out.splitlines())
    assert "a\\nb" in str(ps.index.list("n.parquet")[0])


def test_a_host_that_is_not_there(here: Path) -> None:
    pytest.importorskip("obstore")
    with pytest.raises(ps.StoreError, match="no connection, as nothing answers at the address"):
        ps.read_table("http://127.0.0.1:9/a.parquet", retries=0)


def test_remedies_in_the_words_of_the_command(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    err = run(capsys, "rewrite", "t.parquet", "-o", "new.parquet", "--sort-by", "id desc")[2]
    assert "write id:desc for that order" in err
    err = run(capsys, "head", "texts")[2]
    assert err.endswith("name files of other names, or give a glob in quotes\n")
    for scheme, variable in (
        ("s3", "AWS_ACCESS_KEY_ID"),
        ("gs", "GOOGLE_APPLICATION_CREDENTIALS"),
        ("abfss", "AZURE_STORAGE_ACCOUNT_KEY"),
    ):
        error = failed(
            Fault("denied", "not let in", advice=ADVICE), f"{scheme}://b/x", "it", 1, 0.0
        )
        assert isinstance(error, ps.AccessDeniedError)
        said = in_options(str(error))
        assert f"such as {variable} (in Python" in said
        assert f"{variable.partition('_')[0]}_SKIP_SIGNATURE=true" in said
        assert said.count("SKIP_SIGNATURE") == 1 and "{" not in said
    error = failed(
        Fault("denied", "the store answered 401", advice=ADVICE), "https://h/x", "it", 1, 0.0
    )
    assert "AWS" not in in_options(str(error)) and "header of authorization" in str(error)


def test_files_that_are_not_there(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("link.parquet").symlink_to("gone.parquet")
    for name, words in (
        ("link.parquet", "link.parquet: no such file; it is a symbolic link to gone.parquet, which is not there"),
        ("", "'': an empty name, which no file has"),
    ):  # fmt: skip
        with pytest.raises(FileNotFoundError) as caught:
            ps.read_table(name)
        assert str(caught.value) == words
        assert run(capsys, "head", name)[2] == f"pageseek: {words}\n"
    with pytest.raises(
        ps.CorruptFileError, match="bytes are the content of a file: a path is a str"
    ):
        ps.read_table(b"t.parquet")


def test_files_that_are_gone(here: Path) -> None:
    scan = ps.scan("t.parquet")
    query, plan, dataset = scan.prepare("id = :k"), scan.plan(), ps.dataset("t.parquet")
    assert query(1).num_rows == 1
    os.remove("t.parquet")
    for work in (lambda: query(1), lambda: [*plan.execute()], dataset.to_table, scan.to_table):
        with pytest.raises(FileNotFoundError) as caught:
            work()
        assert str(caught.value).endswith(
            "t.parquet: no such file; it was deleted or renamed, or lies on another machine"
        )
        assert caught.value.__cause__ is None
