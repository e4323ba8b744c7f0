package io.pageseek.spark;

import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.types.StructType;

/** So little is left that the driver reads it: Spark makes a LocalTableScan of it, which needs no task. */
public final class DriverScan extends PlannedScan implements LocalScan {
  private InternalRow[] rows;

  DriverScan(Planned planned, StructType schema, String key) {
    super(planned, schema, key);
  }

  @Override
  public synchronized InternalRow[] rows() {
    if (rows == null) {
      rows = ((List<?>) planned.answer("local")).toArray(new InternalRow[0]);
    }
    return rows;
  }
}
