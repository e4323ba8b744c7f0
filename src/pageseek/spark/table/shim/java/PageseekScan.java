package io.pageseek.spark;

import java.util.Arrays;
import org.apache.spark.sql.connector.expressions.FieldReference;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsRuntimeV2Filtering;
import org.apache.spark.sql.execution.datasources.v2.python.PythonInputPartition;
import org.apache.spark.sql.execution.datasources.v2.python.PythonPartitionReaderFactory;
import org.apache.spark.sql.types.StructType;

/**
 * A scan by tasks: Python's, or those of Spark's own reader. A join may add filters at run time; the tasks are made
 * after that.
 *
 * <p>Spark's reader has the files of which most rows are wanted. It gives batches of columns, which Python's tasks
 * cannot. So who reads is known when Spark has been told that batches come. Where it is a side of a join, rows are
 * promised, and its filters decide who reads.
 */
public final class PageseekScan extends PlannedScan implements Batch, SupportsRuntimeV2Filtering {
  private final PageseekTable table;
  private NativeScan other;
  private Predicate[] runtime = new Predicate[0];
  private boolean joined;
  private boolean columnar;
  private boolean byOther;

  /**
   * @param other Spark's own scan of the same files, or null
   */
  PageseekScan(
      PageseekTable table, Planned planned, StructType schema, String key, NativeScan other) {
    super(planned, schema, key);
    this.table = table;
    this.other = other;
  }

  @Override
  public Batch toBatch() {
    return this;
  }

  @Override
  public Scan.ColumnarSupportMode columnarSupportMode() {
    if (other == null || joined) {
      return Scan.ColumnarSupportMode.UNSUPPORTED;
    }
    Scan.ColumnarSupportMode mode = other.columns();
    columnar |= mode != Scan.ColumnarSupportMode.UNSUPPORTED;
    return mode;
  }

  /** The metrics of Spark's Python reader are needed as well: it reports them. */
  @Override
  public CustomMetric[] supportedCustomMetrics() {
    CustomMetric[] own = super.supportedCustomMetrics();
    CustomMetric[] python = table.python.createPythonMetrics();
    CustomMetric[] made = Arrays.copyOf(own, own.length + python.length);
    System.arraycopy(python, 0, made, own.length, python.length);
    return made;
  }

  /** Who asks tells whether a join may filter by one of them: Spark 4.3 asks about every scan, before all about joins. */
  @Override
  public NamedReference[] filterAttributes() {
    joined |= StackWalker.getInstance().walk(frames -> frames.anyMatch(PageseekScan::prunes));
    String names = planned.text("filterable", "");
    if (names.isEmpty()) {
      return new NamedReference[0];
    }
    return Arrays.stream(names.split("\n"))
        .map(FieldReference::column)
        .toArray(NamedReference[]::new);
  }

  private static boolean prunes(StackWalker.StackFrame frame) {
    return frame.getClassName().startsWith("org.apache.spark.sql.execution.dynamicpruning.");
  }

  @Override
  public void filter(Predicate[] predicates) {
    runtime = predicates;
  }

  @Override
  public InputPartition[] planInputPartitions() {
    String about = Request.all(runtime).toString();
    String asked = columnar ? "reader_of_batches" : "reader";
    byOther = other != null && planned.text(asked, about).equals("native");
    if (byOther) {
      other = runtime.length == 0 ? other : other.of(planned.text("native", about));
      return other.partitions();
    }
    byte[][] parts = planned.pieces("partitions", about);
    InputPartition[] made = new InputPartition[parts.length];
    for (int i = 0; i < made.length; i++) {
      made[i] = new PythonInputPartition(i, parts[i]);
    }
    return made;
  }

  /** Spark calls it after the partitions are planned for the last time. */
  @Override
  public PartitionReaderFactory createReaderFactory() {
    if (byOther) {
      return other.readers();
    }
    try {
      return (PartitionReaderFactory)
          NativeFiles.made(
              PythonPartitionReaderFactory.class,
              table.python,
              planned.answer("function"),
              schema);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("this release of Spark has another Python reader", e);
    }
  }

  @Override
  public boolean equals(Object other) {
    if (!(other instanceof PageseekScan)) {
      return false;
    }
    PageseekScan scan = (PageseekScan) other;
    return table == scan.table && key.equals(scan.key) && Arrays.equals(runtime, scan.runtime);
  }

  @Override
  public int hashCode() {
    return key.hashCode();
  }
}
