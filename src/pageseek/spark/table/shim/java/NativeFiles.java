package io.pageseek.spark;

import java.lang.reflect.Constructor;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.datasources.FileStatusCache;
import scala.Option;

/** Files that are known by name, size and time, so that Spark lists nothing. */
final class NativeFiles extends FileStatusCache {
  private final Map<Path, FileStatus[]> known = new HashMap<>();

  void add(Path path, long size, long time) {
    known.put(path, new FileStatus[] {new FileStatus(size, false, 1, 1 << 25, time, path)});
  }

  @Override
  public Option<FileStatus[]> getLeafFiles(Path path) {
    return Option.apply(known.get(path));
  }

  @Override
  public void putLeafFiles(Path path, FileStatus[] files) {}

  @Override
  public void invalidateAll() {}

  /** A new object. Releases of Spark differ in the optional arguments at the end. */
  static Object made(Class<?> wanted, Object... first) throws ReflectiveOperationException {
    Constructor<?> constructor = wanted.getConstructors()[0];
    Object[] arguments = Arrays.copyOf(first, constructor.getParameterCount());
    Arrays.fill(arguments, first.length, arguments.length, Option.empty());
    return constructor.newInstance(arguments);
  }
}
