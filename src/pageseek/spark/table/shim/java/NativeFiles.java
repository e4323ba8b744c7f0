package io.pageseek.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.IOException;
import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.execution.datasources.FileStatusCache;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.execution.datasources.PartitionPath;
import org.apache.spark.sql.execution.datasources.PartitionSpec;
import org.apache.spark.sql.execution.datasources.v2.FileScan;
import org.apache.spark.sql.execution.datasources.v2.FileScanBuilder;
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetScanBuilder;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.collection.immutable.Seq;

/** Files that are known by name, size and time, so that Spark lists nothing. */
final class NativeFiles extends FileStatusCache {
  private final Map<Path, FileStatus[]> known = new HashMap<>();

  private NativeFiles() {}

  @Override
  public Option<FileStatus[]> getLeafFiles(Path path) {
    return Option.apply(known.get(path));
  }

  @Override
  public void putLeafFiles(Path path, FileStatus[] files) {}

  @Override
  public void invalidateAll() {}

  /**
   * Spark's own scan of files.
   *
   * @param session the session, of the class that this release of Spark wants
   * @param given JSON: the schema, of each file its path, size, time and the values of its folders, the names of
   *     these, and whether to prune by the filters
   * @param required the columns to read
   */
  static FileScan scan(Object session, String given, StructType required, Filter[] filters) {
    try {
      JsonNode read = new ObjectMapper().readTree(given);
      StructType schema = (StructType) DataType.fromJson(read.get("schema").asText());
      StructType folders = new StructType();
      StructType stored = schema;
      for (JsonNode name : read.get("folders")) {
        folders = folders.add(schema.apply(name.asText()));
        stored = without(stored, name.asText());
      }
      Map<Path, InternalRow> values = new LinkedHashMap<>();
      NativeFiles files = new NativeFiles();
      List<Path> paths = new ArrayList<>();
      for (JsonNode one : read.get("files")) {
        Path path = new Path(new File(one.get(0).asText()).toURI());
        long size = one.get(1).asLong();
        long time = one.get(2).asLong();
        files.known.put(path, new FileStatus[] {new FileStatus(size, false, 1, 1 << 25, time, path)});
        paths.add(path);
        if (!values.containsKey(path.getParent())) {
          values.put(path.getParent(), row(folders, one.get(3)));
        }
      }
      List<PartitionPath> partitions = new ArrayList<>();
      values.forEach((path, row) -> partitions.add(new PartitionPath(row, path)));
      Object index =
          made(
              InMemoryFileIndex.class,
              session,
              sequence(paths),
              scala.collection.immutable.Map$.MODULE$.empty(),
              Option.apply(schema),
              files,
              Option.apply(new PartitionSpec(folders, sequence(partitions))));
      CaseInsensitiveStringMap options = new CaseInsensitiveStringMap(new HashMap<>());
      FileScanBuilder builder =
          (FileScanBuilder)
              made(ParquetScanBuilder.class, session, index, schema, stored, options);
      builder.pruneColumns(required);
      if (read.get("push").asBoolean()) {
        builder.pushedDataFilters_$eq(builder.pushDataFilters(filters));
      }
      return (FileScan) builder.build();
    } catch (IOException | ReflectiveOperationException e) {
      throw new IllegalStateException("this release of Spark has another reader of Parquet", e);
    }
  }

  private static <T> Seq<T> sequence(List<T> given) {
    return scala.jdk.javaapi.CollectionConverters.asScala(given).toSeq();
  }

  private static StructType without(StructType schema, String name) {
    return new StructType(
        Arrays.stream(schema.fields())
            .filter(field -> !field.name().equals(name))
            .toArray(StructField[]::new));
  }

  /** Values in Spark's internal form, from their texts. */
  private static InternalRow row(StructType schema, JsonNode texts) {
    Object[] values = new Object[schema.length()];
    for (int i = 0; i < values.length; i++) {
      if (texts.get(i).isNull()) {
        continue;
      }
      String text = texts.get(i).asText();
      DataType type = schema.apply(i).dataType();
      if (type.equals(DataTypes.StringType)) {
        values[i] = UTF8String.fromString(text);
      } else if (type.equals(DataTypes.IntegerType) || type.equals(DataTypes.DateType)) {
        values[i] = Integer.valueOf(text);
      } else {
        values[i] = Long.valueOf(text);
      }
    }
    return new GenericInternalRow(values);
  }

  /** A new object. Releases of Spark differ in the optional arguments at the end. */
  static Object made(Class<?> wanted, Object... first) throws ReflectiveOperationException {
    Constructor<?> constructor = wanted.getConstructors()[0];
    Object[] arguments = Arrays.copyOf(first, constructor.getParameterCount());
    Arrays.fill(arguments, first.length, arguments.length, Option.empty());
    return constructor.newInstance(arguments);
  }
}
