"""`pageseek completion`: the scripts are accepted by their shells, and complete."""

from __future__ import annotations

import importlib
import shutil
import subprocess
from pathlib import Path

import pytest

from support.command import run

completion = importlib.import_module("pageseek.cli.completion")


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_a_script_is_accepted_by_its_shell(
    shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("shtab")
    code, script, err = run(capsys, "completion", shell)
    assert (code, err) == (0, "")
    assert "rewrite" in script and "verify" in script and "sort-by" in script
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    file = tmp_path / "script"
    file.write_text(script)
    subprocess.run([shell, "-n", str(file)], check=True, capture_output=True)


def test_bash_completes_commands_options_and_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("shtab")
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    (tmp_path / "script").write_text(run(capsys, "completion", "bash")[1])
    (tmp_path / "orders.parquet").touch()

    def offered(*words: str) -> set[str]:
        line = " ".join(f"'{word}'" for word in words)
        function = "$(complete -p pageseek | sed 's/.*-F \\([^ ]*\\) .*/\\1/')"
        code = f"source ./script; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; {function}; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        done = subprocess.run(
            [bash, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return set(done.stdout.split())

    assert offered("pageseek", "in") == {"inspect", "index"}
    assert "--columns" in offered("pageseek", "scan", "--co")
    assert "attach" in offered("pageseek", "index", "at")
    assert "parquet" in offered("pageseek", "scan", "--format", "pa")
    assert "orders.parquet" in offered("pageseek", "head", "or")
    assert offered("pageseek", "help", "sc") == {"scan", "schema"}


def test_without_shtab_the_remedy_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(completion, "find_spec", lambda name: None)
    code, out, err = run(capsys, "completion", "bash")
    assert (code, out) == (1, "")
    assert "pip install 'pageseek[cli]'" in err
