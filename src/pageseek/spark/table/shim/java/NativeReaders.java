package io.pageseek.spark;

import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Collections;
import java.util.Deque;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;
import org.apache.spark.Dependency;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.DataSourceRDD;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Spark's readers, with a comparison of all files with the plan when an action sends them to executors.
 *
 * <p>Spark does not ask each partition where its task had best run: where a task reads of several frames, the answer of
 * one is enough. But each action sends the readers. Executors get Spark's own.
 */
final class NativeReaders implements PartitionReaderFactory {
  private static final long serialVersionUID = 1;

  private final PartitionReaderFactory readers;
  private final transient NativeVersions versions;

  NativeReaders(PartitionReaderFactory readers, NativeVersions versions) {
    this.readers = readers;
    this.versions = versions;
  }

  @Override
  public PartitionReader<InternalRow> createReader(InputPartition partition) {
    return readers.createReader(partition);
  }

  @Override
  public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
    return readers.createColumnarReader(partition);
  }

  @Override
  public boolean supportColumnarReads(InputPartition partition) {
    return readers.supportColumnarReads(partition);
  }

  private Object writeReplace() throws ReflectiveOperationException {
    String change = versions.changes();
    if (!change.isEmpty() && !isCached()) {
      throw new IllegalStateException(change);
    }
    return readers;
  }

  /** Whether all rows that these have read are cached, so that the files are of no use any more. */
  private boolean isCached() throws ReflectiveOperationException {
    SparkContext context = SparkContext.getOrCreate();
    for (RDD<?> cached : CollectionConverters.asJava(context.getPersistentRDDs()).values()) {
      if (isReadBy(cached) && isWhole(context, cached.id())) {
        return true;
      }
    }
    return false;
  }

  private static boolean isWhole(SparkContext context, int rdd) {
    return Arrays.stream(context.getRDDStorageInfo())
        .anyMatch(info -> info.id() == rdd && info.numCachedPartitions() == info.numPartitions());
  }

  /** Whether an RDD has rows of these readers, without a shuffle between. */
  private boolean isReadBy(RDD<?> made) throws ReflectiveOperationException {
    Deque<RDD<?>> left = new ArrayDeque<>(List.of(made));
    Set<RDD<?>> seen = Collections.newSetFromMap(new IdentityHashMap<>());
    while (!left.isEmpty()) {
      RDD<?> one = left.pop();
      if (one instanceof DataSourceRDD && of(one) == this) {
        return true;
      }
      if (seen.add(one)) {
        for (Dependency<?> on : CollectionConverters.asJava(one.dependencies())) {
          if (!(on instanceof ShuffleDependency)) {
            left.push(on.rdd());
          }
        }
      }
    }
    return false;
  }

  private static Object of(RDD<?> rdd) throws ReflectiveOperationException {
    var field = DataSourceRDD.class.getDeclaredField("partitionReaderFactory");
    field.setAccessible(true);
    return field.get(rdd);
  }
}
