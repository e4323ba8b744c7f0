"""Compiles the Java table for Spark; `--check` compares the result with the jar that is committed.

The jar has the same bytes on every machine with JDK 17: its entries are sorted and have one date.
"""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHIM = ROOT / "src" / "pageseek" / "spark" / "table" / "shim"
JAR = SHIM / "pageseek-spark.jar"
DATE = (2026, 1, 1, 0, 0, 0)
OPTIONS = [
    "--release",
    "17",
    "-g:none",
    "-proc:none",
    "-Xlint:all",
    "-Xlint:-path,-classfile,-deprecation",
]


def compiled(folder: Path) -> bytes:
    """The bytes of the jar."""
    import pyspark

    jars = Path(pyspark.__file__).parent / "jars"
    classes, jar = folder / "classes", folder / JAR.name
    sources = sorted(str(path) for path in (SHIM / "java").glob("*.java"))
    subprocess.run(
        ["javac", *OPTIONS, "-Werror", "-cp", f"{jars}/*", "-d", str(classes), *sources], check=True
    )
    services = SHIM / "java" / "services"
    files = {path.relative_to(classes): path for path in classes.rglob("*.class")}
    files |= {Path("META-INF/services") / path.name: path for path in services.glob("*")}
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_STORED) as made:
        for name, path in sorted(files.items()):
            made.writestr(zipfile.ZipInfo(name.as_posix(), DATE), path.read_bytes())
    return jar.read_bytes()


def main(arguments: list[str]) -> int:
    """Write the jar, or compare it."""
    with tempfile.TemporaryDirectory() as folder:
        made = compiled(Path(folder))
    if "--check" in arguments:
        if made == JAR.read_bytes():
            return 0
        sys.stderr.write(
            f"{JAR.relative_to(ROOT)} is not what its sources compile to: run `make jar`\n"
        )
        return 1
    JAR.write_bytes(made)
    sys.stdout.write(f"{JAR.relative_to(ROOT)}: {len(made):,} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
