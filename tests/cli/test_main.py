"""The command: arguments, exit codes, errors, start."""

from __future__ import annotations

import argparse
import importlib
import io
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.cli import main
from pageseek.cli.arguments import keys, names, rates
from pageseek.cli.wording import in_options
from pageseek.storage.obstore_faults import ADVICE
from support.command import ROWS as N
from support.command import run

main_module = importlib.import_module(
    "pageseek.cli.main"
)  # the package has the function of that name


@pytest.mark.parametrize("term", ["", "id >", "id = 'x", "day = date 'tomorrow'", "id is 3"])
def test_a_bad_condition_is_pointed_at(
    term: str, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "scan", path, "--where", term)
    assert (code, out) == (1, "")
    head, line, caret = err.splitlines()
    assert head.startswith("pageseek: filter: ")
    assert line == f"  {term}"
    assert caret.strip() == "^"


@pytest.mark.parametrize("term", ["id < 9 and name = 3", "nope = 3", "odd = 'x\ny' or name in (3)"])
def test_a_condition_that_does_not_fit_is_pointed_at(
    term: str, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ps.PredicateError) as caught:
        ps.read_table(path, filter=term)
    words, line, caret = str(caught.value).split("\n")
    code, out, err = run(capsys, "scan", path, "--where", term)
    assert (code, out) == (1, "")
    assert err.splitlines()[1:] == [line, caret]
    listed = " (`pageseek schema FILE` lists the columns and their types)"
    said = words + (listed if "no column" in words else "")
    assert err.splitlines()[0] == f"pageseek: {said}"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["scan", "missing.parquet"], "check the path"),
        (["inspect", "{here}"], "Parquet"),
    ],
)
def test_errors_are_one_line_on_stderr(
    arguments: list[str], words: str, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, *(part.format(path=path, here=__file__) for part in arguments))
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("pageseek: ")
    assert words in err


def test_wrong_arguments_exit_with_two(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as error:
        main(["scan", "x.parquet", "--limit", "-1"])
    assert error.value.code == 2
    assert "not negative" in capsys.readouterr().err


def test_module_runs_as_a_command(path: str) -> None:
    command = [sys.executable, "-m", "pageseek"]
    shown = subprocess.run([*command, "--version"], check=True, capture_output=True, text=True)
    assert shown.stdout.strip() == f"pageseek {ps.__version__}"
    counted = subprocess.run(
        [*command, "scan", path, "--limit", "1"], check=True, capture_output=True
    )
    assert counted.stdout.splitlines()[2].startswith(b" 0")


@pytest.mark.parametrize(
    "arguments",
    [["--version"], ["--help"], [], ["scan", "--help"], ["inspect", "--help"], ["index", "attach", "--help"], ["rewrite", "--help"]],
)  # fmt: skip
def test_help_imports_neither_numpy_nor_pyarrow(arguments: list[str]) -> None:
    code = (
        "import sys\n"
        "from pageseek.cli import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "heavy = {'numpy', 'pyarrow', 'rich', 'tqdm', 'shtab', 'matplotlib'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "pageseek" in done.stdout


def test_a_version_imports_no_subcommand() -> None:
    code = (
        "import sys\nfrom pageseek.cli import main\n"
        "from pageseek.cli.main import ROOMS\n"
        "assert main([]) == 0\n"
        "try:\n    main(['--version'])\nexcept SystemExit:\n    pass\n"
        "assert not [room for room in ROOMS if f'pageseek.cli.{room}' in sys.modules]"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_without_arguments_there_is_an_overview(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys)
    assert (code, err) == (0, "")
    assert "pageseek head FILE" in out and "`pageseek help COMMAND`" in out


@pytest.mark.parametrize(
    ("arguments", "same"),
    [
        (["help"], ["--help"]),
        (["help", "--help"], ["--help"]),
        (["help", "help"], ["--help"]),
        (["-h"], ["--help"]),
        (["help", "scan"], ["scan", "--help"]),
        (["help", "index", "attach"], ["index", "attach", "--help"]),
        (["help", "bench"], ["bench", "--help"]),
        (["--color", "never", "help", "scan"], ["scan", "--help"]),
        (["-V"], ["--version"]),
    ],
)
def test_help_is_a_command_too(
    arguments: list[str], same: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    said = []
    for words in (arguments, same):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 0
        said.append(capsys.readouterr())
    assert said[0] == said[1] and said[0].out


def test_help_of_every_command_has_examples_that_parse(capsys: pytest.CaptureFixture[str]) -> None:
    parser = main_module.parser()
    helped = 0
    for name in main_module.COMMANDS:
        if name in ("bench", "help"):
            continue
        with pytest.raises(SystemExit) as ended:
            main([name, "--help"])
        assert ended.value.code == 0
        examples = capsys.readouterr().out.partition("examples:\n")[2].splitlines()
        assert examples, name
        for line in examples:
            words = shlex.split(
                line.partition(">")[0] if name == "completion" else line, comments=True
            )
            words = words[words.index("pageseek") + 1 :]
            if ">" in words:
                words = words[: words.index(">")]
            assert parser.parse_args(words).command == name
            helped += 1
    assert helped > 20


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["inspct", "x"], "pageseek: no command 'inspct'; did you mean inspect?"),
        (["index", "attac", "x"], "pageseek index: no action 'attac'; did you mean attach?"),
        (["scan", "x", "--colums", "a"], "pageseek scan: no option --colums; did you mean --columns?"),
        (["index", "attach", "x", "--in-place", "--blom", "a"], "no option --blom; did you mean --bloom?"),
        (["completion", "zhs"], "pageseek completion: no shell 'zhs'; did you mean zsh?"),
        (["scan", "x", "--qqqq"], "pageseek scan: no option --qqqq\n"),
        (["--color", "never", "scna", "x"], "no command 'scna'; did you mean scan?"),
        (["inspect", "x", "--plot", "x.gif"], "ends in .png, .svg, .pdf"),
        (["help", "scna"], "pageseek: no command 'scna'; did you mean scan?"),
        (["help", "index", "attac"], "pageseek index: no action 'attac'; did you mean attach?"),
        (["--verison"], "pageseek: no option --verison; did you mean --version?"),
        (["-v"], "pageseek: no option -v; did you mean -V?"),
        ([__file__], f"pageseek: no command {__file__!r}; `pageseek inspect {__file__}` shows what is there"),
        (["rewrite", "x", "--outptu", "y"], "pageseek rewrite: no option --outptu; did you mean --output?"),
        (["scan", "--colums"], "pageseek scan: no option --colums; did you mean --columns?"),
        (["scan", "--where=a > 1"], "arguments are required: source"),
        (["scan", "x", "--format", "cvs"], "--format cvs: it is one of table, jsonl, csv, arrow, parquet; did you mean csv?"),
        (["scan", "x", "--color", "alwa"], "is one of auto, always, never; did you mean always?"),
    ],
)  # fmt: skip
def test_a_misspelt_word_is_answered_with_the_nearest(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    err = capsys.readouterr().err
    assert words in err
    assert err.count("\n") == 2 and "--help` shows what there is" in err


def _options() -> Iterator[tuple[list[str], argparse.Action]]:
    """The options of every command that take a value."""

    def walk(words: list[str], made: argparse.ArgumentParser) -> Iterator[Any]:
        for action in made._actions:
            if isinstance(action, argparse._SubParsersAction):
                for name, inner in action.choices.items():
                    yield from walk([*words, name], inner)
            elif action.option_strings and action.nargs != 0:
                yield words, action

    yield from walk([], main_module.parser())


VALUES = {"--color": "never", "--format": "csv", "--codec": "zstd"}


@pytest.mark.parametrize(
    ("words", "action"),
    [pytest.param(words, action, id=" ".join([*words, action.option_strings[-1]])) for words, action in _options()],
)  # fmt: skip
def test_an_option_that_is_given_twice_loses_no_value(
    words: list[str], action: argparse.Action, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its values are added, or the second is refused."""
    name = action.option_strings[-1].replace("colour", "color")
    first, second = ("1", "2") if action.type is not None else ("a", "b")
    if action.choices or name in VALUES:
        first = second = VALUES[name]
    parser = main_module.parser()
    needed = ["--output", "o"] if words[-1:] in (["attach"], ["detach"], ["rewrite"]) else []
    if name == "--output":
        needed = []
    if name == "--plot":
        first, second = "a.png", "b.png"
    if name == "--timestamp":
        first, second = "2024-01-31", "2024-02-29"
    # what an option of a command with actions stands before
    action_words = {"": ["scan", "x"], "index": ["list", "x"], "completion": ["bash"]}
    files = action_words.get(" ".join(words), ["x"])
    if words == ["advise"] and name == "--columns":
        needed = ["--filter", "q"]
    given = [*words, name, first, name, second, *files]
    if needed[:1] == ["--filter"]:
        given[len(words) : len(words)] = needed
    else:
        given += needed
    try:
        options = parser.parse_args(given)
    except SystemExit:
        assert f"{name} is given twice; one value is used" in capsys.readouterr().err
        return
    made = getattr(options, action.dest)
    assert first in str(made) and second in str(made), (given, made)
    assert made == [first, second] or len(str(made)) > len(first) + len(second)


def test_columns_given_one_by_one_are_all_there(
    path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = run(capsys, "scan", path, "--columns", "id", "--columns", "name,day", "-n", "1")[1]
    assert shown.split()[:3] == ["id", "name", "day"]
    assert shown == run(capsys, "scan", path, "--columns", "id,name,day", "-n", "1")[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--bloom", "a=0.1", "--bloom", "a=0.2"], "--bloom: 'a' is given 0.1 and 0.2"),
        (["--page-index", "a", "--page-index", "none"], "--page-index is given names, and all or none as well"),
        (["--bloom", "a=2"], "a rate is between 0 and 1"),
        (["--file-bloom", "a=nan"], "a rate is between 0 and 1"),
        (["--bloom", "a=some"], "'some' is no rate"),
    ],
)  # fmt: skip
def test_values_that_no_index_can_have_are_refused(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["index", "attach", "x", "--output", "y", *arguments])
    assert ended.value.code == 2 and words in capsys.readouterr().err


def test_several_sources_globs_and_standard_input(
    path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        shutil.copy(path, tmp_path / f"{name}.parquet")
    glob, a, b = (str(tmp_path / name) for name in ("*.parquet", "a.parquet", "b.parquet"))
    for given in ([glob], [a, b], [str(tmp_path)]):
        assert run(capsys, "count", *given)[1] == f"{2 * N}\n"
    assert len(json.loads(run(capsys, "inspect", glob, "--json")[1])) == 2
    assert len(json.loads(run(capsys, "index", "list", glob, "--json")[1])) == 2
    assert run(capsys, "index", "verify", glob)[1].count("0 wrong") == 2
    assert "2 files" in run(capsys, "explain", a, b)[1]
    out = str(tmp_path / "out" / "one.parquet")
    Path(out).parent.mkdir()
    assert run(capsys, "rewrite", a, b, "--output", out)[0] == 0
    assert ps.open(out).num_rows == 2 * N
    body = Path(path).read_bytes()
    for command, said in (
        ("count", f"{N}\n"),
        ("schema", "scattered"),
        ("inspect", "4,000 rows"),
        ("head", "n00001"),
    ):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(body)))
        code, out, _ = run(capsys, command, "-")
        assert code == 0 and said in out
    assert run(capsys, "count", "-", path)[0] == 2
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"no file")))
    code, _, err = run(capsys, "count", "-")
    assert code == 1 and err.startswith(
        "pageseek: standard input: 7 bytes are too few for a Parquet file\n"
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--where", "id = ?"], "? has no value: write the value in its place"),
        (["--where", "id = :x"], "param('x') has no value: write the value in its place\n"),
        (["--table-version", "3"], "--table-version: the source"),
        (["--snapshot", "3"], "--snapshot: the source"),
    ],
)
@pytest.mark.parametrize("command", ["scan", "count", "explain"])
def test_remedies_are_options_of_the_command(
    command: str,
    arguments: list[str],
    words: str,
    path: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, err = run(capsys, command, path, *arguments)
    assert (code, out) == (1, "") and words in err
    assert "params=" not in err


def test_remedies_of_places_that_cannot_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "inspect", "foo://bucket/x.parquet")
    assert code == 1 and err.endswith("fsspec, or download the file\n"), err
    assert in_options("no connection; try later, or raise retries=, timeout=") == (
        "no connection; try later"
    )
    assert in_options("t/version=3/x.parquet: gone") == "t/version=3/x.parquet: gone"


def test_a_time_is_checked_with_the_arguments(
    path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["count", path, "--timestamp", "noon"])
    assert caught.value.code == 2
    assert "'noon' is no time, such as 2024-01-31T12:00:00Z" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "said"),
    [("-c", "--columns"), ("-w", "--where"), ("--select", "--columns"), ("--head", "--limit"), ("-N", "-n"), ("-z", None), ("--colums", "--columns")],
)  # fmt: skip
def test_an_option_of_other_commands_is_answered_by_ours(
    option: str, said: str | None, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["scan", path, option, "id"])
    err = capsys.readouterr().err
    assert caught.value.code == 2 and f"no option {option}" in err, err
    assert (f"did you mean {said}?" in err) if said else "did you mean" not in err, err


def test_a_condition_in_place_of_a_file(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "count", path, "id=3")
    assert code == 1 and "a condition stands behind --where" in err, err
    for command, name in (("count", "year=2024/none.parquet"), ("schema", "id=3")):
        assert "--where" not in run(capsys, command, name)[2]


def test_options_are_not_abbreviated(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["scan", path, "--wher", "id = 1"])
    assert caught.value.code == 2
    assert "no option --wher; did you mean --where?" in capsys.readouterr().err


def test_a_dash_is_standard_output(
    path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    terms = ["scan", path, "--where", "id = 1", "--columns", "id"]
    assert run(capsys, *terms, "-o", "-", "--json") == (0, '{"id": 1}\n', "")
    assert run(capsys, *terms, "-o", "-") == run(capsys, *terms)
    assert not list(tmp_path.iterdir())


def test_names_with_commas_are_quoted() -> None:
    for given, meant in (
        ("a,b", ["a", "b"]), (' a , "b,c" ,d', ["a", "b,c", "d"]), ('"a""b"', ['a"b']), ('" "', [" "]),
        ('a"b', ['a"b']), (",a,,", ["a"]), ("", []), ('"a', ['"a']), ("s.x", ["s.x"]),
    ):  # fmt: skip
        assert names(given) == meant, given
    for given, keyed in (
        ('"a,b"', ["a,b"]), ('(id,"a,b")', [("id", "a,b")]), ('(a, b), "(c" ,d(e', [("a", "b"), "(c", "d(e"]),
        ('"(a,b)",("x(""y)",z)', ["(a,b)", ('x("y)', "z")]), ("a,,()", ["a", ()]),
    ):  # fmt: skip
        assert keys(given) == keyed, given
    for given, rated in (
        ('"a,b",id', {"a,b": 0.01, "id": 0.01}), ('"a,b"=0.2, c=0.1,', {"a,b": 0.2, "c": 0.1}),
        ('"a=b","c=""d" = 0.5', {"a=b": 0.01, 'c="d': 0.5}),
    ):  # fmt: skip
        assert rates(given) == rated, given


def test_what_the_shell_expands_and_pipes_are_answered_by_the_remedy(
    path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    err = run(capsys, "head", "{a,b}.parquet")[2]
    assert "no such file; {a,b} is no wildcard: leave out the quotes" in err
    assert "leave out the quotes" in run(capsys, "head", "{a,b}*.parquet")[2]
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        err = run(capsys, "head", str(tmp_path / "pipe"))[2]
        assert err.endswith(
            "not a regular file but a pipe; to read it whole, give it as standard input: - in place of its name, and < FILE\n"
        )
    said = in_options(
        "s3://b: denied; give credentials in the environment or as storage_options" + ADVICE
    )
    assert "AWS_SKIP_SIGNATURE=true" in said and "storage_options={" not in said
    folder = tmp_path / "day=2024-01-31"
    folder.mkdir()
    (folder / "x.parquet").write_bytes(Path(path).read_bytes())
    err = run(capsys, "inspect", str(folder / "x.parquet"), "--column", "month")[2]
    assert "no column 'month'" in err
    (folder / "x.parquet").rename(folder / "y.parquet")
    folder.rename(tmp_path / "month=1")
    err = run(capsys, "inspect", str(tmp_path / "month=1" / "y.parquet"), "--column", "month")[2]
    assert "'month' is in the names of folders, and the file does not store it" in err


def test_one_row_is_named_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "one.parquet")
    pq.write_table(pa.table({"a": [1]}), path)
    for arguments, said in (
        (("head", path, "--columns", ""), "1 row, no columns"),
        (("scan", path, "--columns", "", "--format", "table"), "1 row, no columns"),
        (("advise", path), ": 1 row, 1 file, "),
        (("rewrite", path, "-o", str(tmp_path / "new.parquet")), ": 1 row, "),
        (("explain", path), "1 of 1"),
    ):
        _, out, err = run(capsys, *arguments)
        assert said in out + err and "1 rows" not in out + err, (arguments, out, err)
    assert ": 1 row, 1 row group, " in repr(ps.open(path))
    assert "1 row taken" in repr(ps.scan(path).take([0]))
