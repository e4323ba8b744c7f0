package io.pageseek.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.IOException;
import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.datasources.FileStatusCache;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.execution.datasources.v2.FileScan;
import org.apache.spark.sql.execution.datasources.v2.FileScanBuilder;
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetScanBuilder;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
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
   * @param given JSON: the schema, of each file its path, size and time, and whether to prune by the filters
   * @param required the columns to read
   */
  static FileScan scan(Object session, String given, StructType required, Filter[] filters) {
    try {
      JsonNode read = new ObjectMapper().readTree(given);
      StructType schema = (StructType) DataType.fromJson(read.get("schema").asText());
      NativeFiles files = new NativeFiles();
      List<Path> paths = new ArrayList<>();
      for (JsonNode one : read.get("files")) {
        Path path = new Path(new File(one.get(0).asText()).toURI());
        long size = one.get(1).asLong();
        long time = one.get(2).asLong();
        files.known.put(path, new FileStatus[] {new FileStatus(size, false, 1, 1 << 25, time, path)});
        paths.add(path);
      }
      Seq<Path> roots = scala.jdk.javaapi.CollectionConverters.asScala(paths).toSeq();
      Object index =
          made(
              InMemoryFileIndex.class,
              session,
              roots,
              scala.collection.immutable.Map$.MODULE$.empty(),
              Option.apply(schema),
              files);
      CaseInsensitiveStringMap options = new CaseInsensitiveStringMap(new HashMap<>());
      FileScanBuilder builder =
          (FileScanBuilder)
              made(ParquetScanBuilder.class, session, index, schema, schema, options);
      builder.pruneColumns(required);
      if (read.get("push").asBoolean()) {
        builder.pushedDataFilters_$eq(builder.pushDataFilters(filters));
      }
      return (FileScan) builder.build();
    } catch (IOException | ReflectiveOperationException e) {
      throw new IllegalStateException("this release of Spark has another reader of Parquet", e);
    }
  }

  /** A new object. Releases of Spark differ in the optional arguments at the end. */
  static Object made(Class<?> wanted, Object... first) throws ReflectiveOperationException {
    Constructor<?> constructor = wanted.getConstructors()[0];
    Object[] arguments = Arrays.copyOf(first, constructor.getParameterCount());
    Arrays.fill(arguments, first.length, arguments.length, Option.empty());
    return constructor.newInstance(arguments);
  }
}
