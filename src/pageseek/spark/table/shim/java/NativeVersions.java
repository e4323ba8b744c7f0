package io.pageseek.spark;

import java.io.IOException;
import java.math.BigInteger;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;

/** The versions of files that a plan has. The driver compares them with those of now: Spark's reader knows of none. */
final class NativeVersions {
  private static final boolean HAS_NODES =
      FileSystems.getDefault().supportedFileAttributeViews().contains("unix");

  private static final BigInteger SECOND = BigInteger.valueOf(1_000_000_000);

  private final Map<Path, String> planned = new HashMap<>();

  void add(Path path, String version) {
    planned.put(path, version);
  }

  /** What to say of a file that is not as planned; empty if all are. */
  String changes() {
    return planned.keySet().stream()
        .map(this::change)
        .filter(change -> !change.isEmpty())
        .findFirst()
        .orElse("");
  }

  /** What to say of one file if it is not as planned. */
  String change(Path path) {
    String then = planned.get(path);
    String now = version(path);
    if (now.equals(HAS_NODES ? then : then.substring(then.indexOf(':') + 1))) {
      return "";
    }
    return String.format(
        "FileChangedError: %s: the file changed after it was planned (%s -> %s); make the DataFrame again by"
            + " load or read",
        path, then, now);
  }

  /** The version as Python tells it: inode, bytes, nanoseconds. Where Java knows no inodes, it is without them. */
  private static String version(Path path) {
    try {
      Map<String, Object> told =
          Files.readAttributes(path, (HAS_NODES ? "unix:ino," : "") + "size,lastModifiedTime");
      Instant changed = ((FileTime) told.get("lastModifiedTime")).toInstant();
      BigInteger seconds = BigInteger.valueOf(changed.getEpochSecond()); // as nanoseconds they may exceed a long
      BigInteger time = seconds.multiply(SECOND).add(BigInteger.valueOf(changed.getNano()));
      return (HAS_NODES ? told.get("ino") + ":" : "") + told.get("size") + ":" + time;
    } catch (AccessDeniedException e) {
      throw new IllegalStateException(path + ": its version cannot be told", e);
    } catch (FileSystemException e) { // it is gone, or one of its folders is
      return "none";
    } catch (IOException e) {
      throw new IllegalStateException(path + ": its version cannot be told", e);
    }
  }
}
