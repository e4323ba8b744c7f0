package io.pageseek.spark;

import java.nio.file.Path;
import java.util.Arrays;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.PartitionedFile;

/**
 * A partition of Spark's reader whose files are compared with the plan when an action makes a task of it.
 *
 * <p>A DataFrame keeps its partitions for all its actions. Of a task, Spark asks in the driver where it had best run,
 * unless its rows are cached. Executors get Spark's own partition.
 */
final class NativePartition extends FilePartition {
  private static final long serialVersionUID = 1;

  private final transient NativeVersions versions;

  NativePartition(int index, PartitionedFile[] files, NativeVersions versions) {
    super(index, files);
    this.versions = versions;
  }

  @Override
  public String[] preferredLocations() {
    Arrays.stream(files())
        .map(file -> Path.of(file.pathUri()))
        .distinct()
        .map(versions::change)
        .filter(change -> !change.isEmpty())
        .findFirst()
        .ifPresent(
            change -> {
              throw new IllegalStateException(change);
            });
    return super.preferredLocations();
  }

  private Object writeReplace() {
    return new FilePartition(index(), files());
  }
}
