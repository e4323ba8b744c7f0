package io.pageseek.spark;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.Map;
import java.util.function.BiFunction;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The format "pageseek": tables that Python makes from options. Spark makes one object of it for each use.
 *
 * <p>A session that has registered the Python Data Source is one of Connect: no Python of a driver is there to ask.
 */
public final class PageseekProvider implements TableProvider, DataSourceRegister {
  private static final String GIVEN = "given_schema";

  private static volatile Planned factory;

  private PageseekTable inferred;
  private PythonDataSourceV2 far;

  /**
   * Register the object of Python that makes tables: of options as JSON, in a session.
   */
  public static void register(BiFunction<String, Object, Object> made) {
    factory = new Planned(made);
  }

  /**
   * @param schema the columns that are wanted; null is all
   */
  static PageseekTable table(Map<String, String> options, StructType schema) {
    if (factory == null) {
      throw new IllegalStateException("call pageseek.spark.register(spark) in this application first");
    }
    ObjectNode about = JsonNodeFactory.instance.objectNode();
    ObjectNode texts = about.putObject("options");
    options.forEach(texts::put);
    about.put("schema", schema == null ? null : schema.json());
    Object session = org.apache.spark.sql.classic.SparkSession.active();
    Object[] asked = {about.toString(), session};
    PageseekTable table = (PageseekTable) factory.answer("table", asked);
    table.streamed = () -> (UserDefinedPythonDataSource) factory.answer("stream", session);
    return table;
  }

  private static boolean isFar() {
    return org.apache.spark.sql.classic.SparkSession.active()
        .sessionState()
        .dataSourceManager()
        .dataSourceExists(FarTable.PYTHON);
  }

  @Override
  public String shortName() {
    return "pageseek";
  }

  @Override
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    if (isFar()) {
      far = FarTable.source();
      return far.inferSchema(options);
    }
    inferred = table(options.asCaseSensitiveMap(), null);
    return inferred.schema();
  }

  @Override
  public boolean supportsExternalMetadata() {
    return true;
  }

  /**
   * The columns of a Python Data Source that a user gave a schema, with those of folders at the end. A table of a catalog has
   * those of its definition.
   */
  private static StructType withFolders(StructType schema, Map<String, String> options) {
    if (options.containsKey("provider")) {
      return schema;
    }
    Map<String, String> asked = new HashMap<>(options);
    asked.put(GIVEN, schema.json());
    return FarTable.source().inferSchema(new CaseInsensitiveStringMap(asked));
  }

  /** The table whose schema was inferred, or one of the schema that the user wants. */
  @Override
  public Table getTable(
      StructType schema, Transform[] partitioning, Map<String, String> options) {
    if (isFar()) {
      return far == null
          ? new FarTable(FarTable.source(), withFolders(schema, options))
          : new FarTable(far, schema);
    }
    if (inferred != null && inferred.schema().equals(schema)) {
      return inferred;
    }
    return table(options, schema);
  }
}
