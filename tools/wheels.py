"""Asks cibuildwheel which wheels it would build, prints them, and compares them with wheels.yml.

cibuildwheel silently accepts a selector that matches nothing, and a platform that no job builds. GitHub silently
ignores a workflow that is a symbolic link.
"""

from __future__ import annotations

import re
import subprocess
import sys

from steps import PYTHON, ROOT

WORKFLOWS = ROOT / ".github" / "workflows"
ARCHITECTURES = {
    "linux": ["x86_64", "aarch64"],
    "macos": ["x86_64", "arm64"],
    "windows": ["AMD64"],
}


def identifiers(platform: str, architecture: str) -> set[str]:
    """Wheels that pyproject.toml asks for."""
    command = [PYTHON, "-m", "cibuildwheel", "--print-build-identifiers", "--platform", platform]
    done = subprocess.run(
        [*command, "--archs", architecture], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"cibuildwheel: {platform} {architecture}:\n{done.stdout}{done.stderr}")
    return set(done.stdout.split())


def jobs() -> set[str]:
    """Wheels that the jobs of wheels.yml build."""
    text = (WORKFLOWS / "wheels.yml").read_text()
    places = re.findall(r'platform: "(-\w+)"', text)
    line = re.search(r"CIBW_BUILD: (.*)", text)
    pythons = re.findall(r"(\w+)\$", line.group(1)) if line else []
    return {python + place for python in pythons for place in places}


def unread() -> list[str]:
    """What keeps GitHub from running a workflow that lies in the repository."""
    wrong = [
        f".github/workflows/{path.name} is not a regular file: GitHub does not run it"
        for path in sorted(WORKFLOWS.iterdir())
        if path.is_symlink() or not path.is_file()
    ]
    if (ROOT / "wheels.yml").resolve() != WORKFLOWS / "wheels.yml":
        wrong.append("wheels.yml is not a link to .github/workflows/wheels.yml")
    return wrong


def main() -> int:
    """1 when GitHub would not run a workflow, the two disagree, or a platform has not exactly one abi3 wheel."""
    wanted: set[str] = set()
    for platform, architectures in ARCHITECTURES.items():
        for architecture in architectures:
            found = identifiers(platform, architecture)
            print(f"{platform:8} {architecture:8}", *sorted(found))
            wanted |= found
    built, wrong = jobs(), unread()
    wrong += [f"{name}: pyproject.toml asks for it, no job builds it" for name in wanted - built]
    wrong += [f"{name}: a job builds it, pyproject.toml does not" for name in built - wanted]
    limited = sorted(name for name in built if re.match(r"cp\d+-", name))  # not free-threaded: abi3
    places = [name.partition("-")[2] for name in limited]
    wrong += [
        f"{place}: more than one abi3 wheel" for place in set(places) if places.count(place) > 1
    ]
    print(*sorted(wrong), f"{len(built)} wheels, {len(limited)} of them abi3", sep="\n")
    return int(bool(wrong) or not built)


if __name__ == "__main__":
    sys.exit(main())
