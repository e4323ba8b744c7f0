package io.pageseek.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.execution.datasources.PartitionPath;
import org.apache.spark.sql.execution.datasources.PartitionSpec;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
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
import scala.collection.immutable.Seq;

/** Spark's own scan of the files, and of the row groups, that a plan leaves. */
final class NativeScan {
  private final Object session;
  private final StructType required;
  private final Filter[] filters;
  private final FileScan scan;

  /** The bytes that are wanted of a file, as pairs of begin and end. A file that is not here is wanted whole. */
  private final Map<Path, long[]> wanted = new HashMap<>();

  private final NativeVersions versions = new NativeVersions();

  /**
   * @param session the session, of the class that this release of Spark wants
   * @param given JSON: the schema; the names of columns that are values of folders; of each file its path, size, time,
   *     values of folders, wanted bytes and version; whether to prune by the filters
   * @param required the columns to read
   */
  NativeScan(Object session, String given, StructType required, Filter[] filters) {
    this.session = session;
    this.required = required;
    this.filters = filters;
    try {
      this.scan = scan(new ObjectMapper().readTree(given));
    } catch (IOException | ReflectiveOperationException e) {
      throw new IllegalStateException("this release of Spark has another reader of Parquet", e);
    }
  }

  /** The scan of what another plan leaves. */
  NativeScan of(String given) {
    return new NativeScan(session, given, required, filters);
  }

  StructType schema() {
    return scan.readSchema();
  }

  Scan.ColumnarSupportMode columns() {
    return scan.columnarSupportMode();
  }

  PartitionReaderFactory readers() {
    return new NativeReaders(scan.toBatch().createReaderFactory(), versions);
  }

  /** Spark's partitions without the pieces of files where no wanted byte is. */
  InputPartition[] partitions() {
    List<InputPartition> made = new ArrayList<>();
    for (InputPartition one : scan.toBatch().planInputPartitions()) {
      PartitionedFile[] files =
          Arrays.stream(((FilePartition) one).files())
              .filter(this::isWanted)
              .toArray(PartitionedFile[]::new);
      if (files.length > 0) {
        made.add(new NativePartition(made.size(), files, versions));
      }
    }
    return made.toArray(new InputPartition[0]);
  }

  private boolean isWanted(PartitionedFile file) {
    long[] places = wanted.get(file.toPath());
    if (places == null) {
      return true;
    }
    for (int i = 0; i < places.length; i += 2) {
      if (places[i] < file.start() + file.length() && file.start() < places[i + 1]) {
        return true;
      }
    }
    return false;
  }

  private FileScan scan(JsonNode given) throws ReflectiveOperationException {
    StructType schema = (StructType) DataType.fromJson(given.get("schema").asText());
    StructType folders = new StructType();
    StructType stored = schema;
    for (JsonNode name : given.get("folders")) {
      folders = folders.add(schema.apply(name.asText()));
      stored = without(stored, name.asText());
    }
    Map<Path, InternalRow> values = new LinkedHashMap<>();
    NativeFiles files = new NativeFiles();
    List<Path> paths = new ArrayList<>();
    for (JsonNode one : given.get("files")) {
      Path path = new Path(new File(one.get(0).asText()).toURI());
      files.add(path, one.get(1).asLong(), one.get(2).asLong());
      paths.add(path);
      versions.add(java.nio.file.Path.of(path.toUri()), one.get(5).asText());
      if (!values.containsKey(path.getParent())) {
        values.put(path.getParent(), row(folders, one.get(3)));
      }
      if (!one.get(4).isNull()) {
        wanted.put(path, numbers(one.get(4)));
      }
    }
    List<PartitionPath> partitions = new ArrayList<>();
    values.forEach((path, row) -> partitions.add(new PartitionPath(row, path)));
    Object index =
        NativeFiles.made(
            InMemoryFileIndex.class,
            session,
            sequence(paths),
            scala.collection.immutable.Map$.MODULE$.empty(),
            scala.Option.apply(schema),
            files,
            scala.Option.apply(new PartitionSpec(folders, sequence(partitions))));
    // whatever the session's settings are: no rows are missing silently
    CaseInsensitiveStringMap options =
        new CaseInsensitiveStringMap(
            Map.of("ignoreCorruptFiles", "false", "ignoreMissingFiles", "false"));
    FileScanBuilder builder =
        (FileScanBuilder)
            NativeFiles.made(ParquetScanBuilder.class, session, index, schema, stored, options);
    builder.pruneColumns(required);
    if (given.get("push").asBoolean()) {
      builder.pushedDataFilters_$eq(builder.pushDataFilters(filters));
    }
    return (FileScan) builder.build();
  }

  private static long[] numbers(JsonNode given) {
    long[] made = new long[given.size()];
    for (int i = 0; i < made.length; i++) {
      made[i] = given.get(i).asLong();
    }
    return made;
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
}
