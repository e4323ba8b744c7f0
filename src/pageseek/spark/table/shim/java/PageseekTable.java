package io.pageseek.spark;

import java.util.EnumSet;
import java.util.Locale;
import java.util.Set;
import java.util.function.BiFunction;
import java.util.function.Supplier;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A source of Parquet files whose scans are planned by Python in the driver, and read by Python in the tasks.
 *
 * <p>The driver alone loads these classes. What executors get are Spark's own partition and reader factory.
 */
public final class PageseekTable implements Table, SupportsRead, SupportsMetadataColumns {
  private static final String HIDDEN = "_metadata";

  /** What Spark's own readers of files tell. Stores may not tell the time of the last change. */
  private static final StructType ABOUT_FILES =
      StructType.fromDDL(
          "file_path string not null, file_name string not null, file_size long not null, "
              + "file_block_start long not null, file_block_length long not null, "
              + "file_modification_time timestamp, row_index long not null");

  private final String name;
  private final StructType schema;
  final Object session;
  final Planned planner;
  final UserDefinedPythonDataSource python;
  Supplier<UserDefinedPythonDataSource> streamed;

  /**
   * @param session the Spark session
   * @param planner answers questions about scans: see the module planner in Python
   * @param python carries the Python of the executors, its environment and its accumulator
   */
  public PageseekTable(
      String name,
      StructType schema,
      Object session,
      BiFunction<String, Object, Object> planner,
      UserDefinedPythonDataSource python) {
    this.name = name;
    this.schema = schema;
    this.session = session;
    this.planner = new Planned(planner);
    this.python = python;
  }

  /** What names the last of its scans that was read; empty before the first. */
  public String lastNumber() {
    return planner.text("number", "");
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public StructType schema() {
    return schema;
  }

  @Override
  public Set<TableCapability> capabilities() {
    return streamed == null
        ? EnumSet.of(TableCapability.BATCH_READ)
        : EnumSet.of(TableCapability.BATCH_READ, TableCapability.MICRO_BATCH_READ);
  }

  /** A column of the files hides it. Streams have none: Spark's reader for Python gives them the table's columns alone. */
  @Override
  public MetadataColumn[] metadataColumns() {
    if (StackWalker.getInstance().walk(frames -> frames.limit(8).anyMatch(PageseekTable::streams))) {
      return new MetadataColumn[0];
    }
    for (String name : schema.fieldNames()) {
      String lower = name.toLowerCase(Locale.ROOT);
      if (lower.equals(HIDDEN) || lower.startsWith(HIDDEN + ".")) {
        return new MetadataColumn[0];
      }
    }
    MetadataColumn made =
        new MetadataColumn() {
          @Override
          public String name() {
            return HIDDEN;
          }

          @Override
          public DataType dataType() {
            return ABOUT_FILES;
          }

          @Override
          public boolean isNullable() {
            return false;
          }
        };
    return new MetadataColumn[] {made};
  }

  private static boolean streams(StackWalker.StackFrame frame) {
    return frame.getClassName().contains(".streaming.");
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new PageseekScanBuilder(this, options);
  }
}
