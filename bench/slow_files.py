"""Files of this machine as if they lay far away: for Spark's own reader a Hadoop filesystem that waits, for pageseek an object
server that waits as long.

The filesystem waits when a file is opened, and at each read that does not go on where the last one ended; ranges that are asked
for together (vectored reads) wait together. Listings and the status of files do not wait. The server waits at every request,
listings too.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from pageseek.bench.remote.run import TESTS

_CLASS = "pageseek.bench.SlowFiles"
_JAVA = """
package pageseek.bench;

import java.io.EOFException;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.net.URI;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.function.IntFunction;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSInputStream;
import org.apache.hadoop.fs.FileRange;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;

public final class SlowFiles extends RawLocalFileSystem {
  private static final URI NAME = URI.create("slow:///");
  // a thread for each range that waits: the common pool has fewer threads than ranges, which would wait for each other
  private static final Executor WAITING =
      Executors.newCachedThreadPool(
          task -> {
            Thread made = new Thread(task, "slow-files");
            made.setDaemon(true);
            return made;
          });
  private long delay;

  @Override
  public void initialize(URI uri, Configuration conf) throws IOException {
    super.initialize(uri, conf);
    delay = conf.getLong("fs.slow.delay", 0);
  }

  @Override
  public URI getUri() {
    return NAME;
  }

  @Override
  public String getScheme() {
    return "slow";
  }

  @Override
  public FSDataInputStream open(Path path, int size) throws IOException {
    pause();
    return new FSDataInputStream(new SlowStream(new RandomAccessFile(pathToFile(path), "r")));
  }

  private void pause() throws IOException {
    try {
      Thread.sleep(delay);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException(e);
    }
  }

  private final class SlowStream extends FSInputStream {
    private final RandomAccessFile file;
    private long next;
    private long ended = -1;

    SlowStream(RandomAccessFile file) {
      this.file = file;
    }

    @Override
    public void seek(long to) {
      next = to;
    }

    @Override
    public long getPos() {
      return next;
    }

    @Override
    public boolean seekToNewSource(long to) {
      return false;
    }

    @Override
    public int read() throws IOException {
      byte[] one = new byte[1];
      return read(one, 0, 1) < 1 ? -1 : one[0] & 0xff;
    }

    @Override
    public synchronized int read(byte[] into, int at, int length) throws IOException {
      if (next != ended) {
        pause();
      }
      file.seek(next);
      int found = file.read(into, at, length);
      next += Math.max(found, 0);
      ended = next;
      return found;
    }

    @Override
    public void readVectored(List<? extends FileRange> ranges, IntFunction<ByteBuffer> allocate) {
      for (FileRange range : ranges) {
        range.setData(CompletableFuture.supplyAsync(() -> whole(range, allocate), WAITING));
      }
    }

    private ByteBuffer whole(FileRange range, IntFunction<ByteBuffer> allocate) {
      ByteBuffer made = allocate.apply(range.getLength());
      try {
        pause();
        for (long at = range.getOffset(); made.hasRemaining(); ) {
          int found = file.getChannel().read(made, at);
          if (found < 0) {
            throw new EOFException();
          }
          at += found;
        }
      } catch (IOException e) {
        throw new CompletionException(e);
      }
      made.flip();
      return made;
    }

    @Override
    public void close() throws IOException {
      file.close();
    }
  }
}
"""


@dataclass(frozen=True)
class FarFolder:
    """A folder of this machine, from afar. `settings`: those that a Spark session needs for it."""

    folder: Path
    settings: dict[str, str]

    def of_spark(self, path: str) -> str:
        """A file or folder there, for Spark's own reader."""
        return f"slow://{path}"

    def of_pageseek(self, path: str) -> str:
        """A file or folder there, for pageseek."""
        below = Path(path).relative_to(self.folder)
        return f"s3://{self.folder.name}/{quote(below.as_posix())}"


@contextmanager
def far(folder: Path, delay: float) -> Iterator[FarFolder]:
    """A folder with `delay` seconds at each request. Needs a JDK, and a checkout: the server is that of the tests."""
    if not (TESTS / "support" / "object_server").is_dir():
        raise SystemExit("--delay: the object server is that of the tests: run this in a checkout")
    sys.path.insert(0, str(TESTS))
    serve = importlib.import_module("support.object_server.process").ServerProcess
    folder = folder.resolve()
    with TemporaryDirectory() as classes, serve(folder.parent, latency=delay) as server:
        _compile(Path(classes))
        settings = {
            "spark.driver.extraClassPath": classes,
            "spark.hadoop.fs.slow.impl": _CLASS,
            "spark.hadoop.fs.slow.delay": str(round(delay * 1000)),
            "spark.hadoop.fs.s3a.endpoint": server.endpoint,
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.aws.credentials.provider": "AnonymousAWSCredentialsProvider",
        }
        yield FarFolder(folder, settings)


def _compile(classes: Path) -> None:
    import pyspark

    source = classes / "SlowFiles.java"
    source.write_text(_JAVA)
    jars = Path(pyspark.__file__).parent / "jars"
    subprocess.run(
        ["javac", "-nowarn", "-cp", f"{jars}/*", "-d", str(classes), str(source)], check=True
    )
