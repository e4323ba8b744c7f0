package io.pageseek.spark;

import java.util.OptionalLong;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.execution.datasources.v2.python.PythonCustomMetric;
import org.apache.spark.sql.execution.datasources.v2.python.PythonCustomTaskMetric;
import org.apache.spark.sql.types.StructType;

/** A scan that Python has planned. Two are equal if they are scans of one table with the same request. */
public abstract class PlannedScan implements Scan, SupportsReportStatistics {
  /** Names of metrics as Python knows them, and as the UI shows them. */
  private static final String[][] METRICS = {
    {"rows", "rows left by pruning"},
    {"bytes", "bytes left to read"},
    {"files", "files left to read"},
    {"all_files", "files of the source"},
  };

  final Planned planned;
  final StructType schema;
  final String key;

  PlannedScan(Planned planned, StructType schema, String key) {
    this.planned = planned;
    this.schema = schema;
    this.key = key;
  }

  @Override
  public StructType readSchema() {
    return schema;
  }

  /** What names this scan in reports. */
  public final String number() {
    return planned.text("number", "");
  }

  @Override
  public String description() {
    return planned.text("description", "");
  }

  @Override
  public Statistics estimateStatistics() {
    long bytes = planned.number("size");
    long rows = planned.number("rows");
    return new Statistics() {
      @Override
      public OptionalLong sizeInBytes() {
        return OptionalLong.of(bytes);
      }

      @Override
      public OptionalLong numRows() {
        return OptionalLong.of(rows);
      }
    };
  }

  @Override
  public CustomMetric[] supportedCustomMetrics() {
    CustomMetric[] made = new CustomMetric[METRICS.length];
    for (int i = 0; i < made.length; i++) {
      made[i] = new PythonCustomMetric("pageseek " + METRICS[i][0], "pageseek: " + METRICS[i][1]);
    }
    return made;
  }

  @Override
  public CustomTaskMetric[] reportDriverMetrics() {
    CustomTaskMetric[] made = new CustomTaskMetric[METRICS.length];
    for (int i = 0; i < made.length; i++) {
      long value = planned.number(METRICS[i][0]);
      made[i] = new PythonCustomTaskMetric("pageseek " + METRICS[i][0], value);
    }
    return made;
  }
}
