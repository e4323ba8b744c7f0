package io.pageseek.spark;

import java.io.IOException;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.PartitionedFile;

/**
 * A partition of Spark's reader whose files are compared with their planned versions when an action makes a task of it.
 *
 * <p>A DataFrame keeps its partitions for all its actions. For each task, Spark asks in the driver where it had best run,
 * unless its rows are cached. Executors get Spark's own partition.
 */
final class NativePartition extends FilePartition {
  private static final long serialVersionUID = 1;
  private static final boolean HAS_NODES =
      FileSystems.getDefault().supportedFileAttributeViews().contains("unix");

  /** By the names of files. */
  private final transient Map<Path, String> versions;

  NativePartition(int index, PartitionedFile[] files, Map<Path, String> versions) {
    super(index, files);
    this.versions = versions;
  }

  @Override
  public String[] preferredLocations() {
    Arrays.stream(files()).map(NativePartition::path).distinct().forEach(this::check);
    return super.preferredLocations();
  }

  private static Path path(PartitionedFile file) {
    return Path.of(file.pathUri());
  }

  private void check(Path path) {
    String planned = versions.get(path);
    String now = version(path);
    if (!now.equals(HAS_NODES ? planned : planned.substring(planned.indexOf(':') + 1))) {
      throw new IllegalStateException(
          String.format(
              "FileChangedError: %s: the file changed after it was planned (%s -> %s); make the DataFrame again by"
                  + " load or read",
              path, planned, now));
    }
  }

  /** The version as Python tells it: inode, bytes, nanoseconds. Where Java knows no inodes, it is without them. */
  private static String version(Path path) {
    try {
      Map<String, Object> told =
          Files.readAttributes(path, (HAS_NODES ? "unix:ino," : "") + "size,lastModifiedTime");
      long time = ((FileTime) told.get("lastModifiedTime")).to(TimeUnit.NANOSECONDS);
      return (HAS_NODES ? told.get("ino") + ":" : "") + told.get("size") + ":" + time;
    } catch (NoSuchFileException e) {
      return "none";
    } catch (IOException e) {
      throw new IllegalStateException(path + ": its version cannot be told", e);
    }
  }

  private Object writeReplace() {
    return new FilePartition(index(), files());
  }
}
