package io.pageseek.spark;

import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.execution.datasources.v2.python.PythonTable;
import org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The scan of a stream, which Spark's Python Data Source reads. */
final class StreamScan implements Scan {
  private final PageseekTable table;
  private final CaseInsensitiveStringMap options;

  StreamScan(PageseekTable table, CaseInsensitiveStringMap options) {
    this.table = table;
    this.options = options;
  }

  @Override
  public StructType readSchema() {
    return table.schema();
  }

  @Override
  public String description() {
    return table.name();
  }

  @Override
  public MicroBatchStream toMicroBatchStream(String checkpoint) {
    UserDefinedPythonDataSource source = table.streamed.get();
    PythonDataSourceV2 provider =
        new PythonDataSourceV2() {
          @Override
          public UserDefinedPythonDataSource source() {
            return source;
          }
        };
    provider.setShortName("pageseek");
    return new PythonTable(provider, "pageseek", table.schema())
        .newScanBuilder(options)
        .build()
        .toMicroBatchStream(checkpoint);
  }
}
