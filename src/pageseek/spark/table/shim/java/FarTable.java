package io.pageseek.spark;

import java.sql.Date;
import java.sql.Timestamp;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownFilters;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceCreationResult;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.execution.datasources.v2.python.PythonTable;
import org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;
import scala.Product;

/**
 * A Python Data Source each of whose scans has a plan of its own.
 *
 * <p>Spark keeps one plan for all scans of a Python Data Source: the last that filters were pushed into. Queries of one
 * DataFrame or view would get the rows of one another. Spark also reads all columns of such a source.
 */
final class FarTable implements Table, SupportsRead {
  /** The name by which a session knows the Python Data Source. */
  static final String PYTHON = "pageseek_python";

  private final PythonDataSourceV2 source;
  private final StructType schema;

  FarTable(PythonDataSourceV2 source, StructType schema) {
    this.source = source;
    this.schema = schema;
  }

  /** The Python Data Source that the session of a query has registered. */
  static PythonDataSourceV2 source() {
    PythonDataSourceV2 made = new PythonDataSourceV2();
    made.setShortName(PYTHON);
    return made;
  }

  @Override
  public String name() {
    return "pageseek";
  }

  @Override
  public StructType schema() {
    return schema;
  }

  @Override
  public Set<TableCapability> capabilities() {
    return EnumSet.of(TableCapability.BATCH_READ, TableCapability.MICRO_BATCH_READ);
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new Builder(options);
  }

  /** What Spark makes of a Python Data Source that shares with others no more than how Python made it. */
  private ScanBuilder one(StructType columns, CaseInsensitiveStringMap options) {
    PythonDataSourceV2 own =
        new PythonDataSourceV2() {
          @Override
          public UserDefinedPythonDataSource source() {
            return source.source();
          }

          @Override
          public PythonDataSourceCreationResult getOrCreateDataSourceInPython(
              String name, CaseInsensitiveStringMap given, Option<StructType> wanted) {
            return source.getOrCreateDataSourceInPython(name, given, Option.apply(schema));
          }
        };
    own.setShortName(PYTHON);
    return new PythonTable(own, PYTHON, columns).newScanBuilder(options);
  }

  /** Whether Python's dates hold those of a filter: they have the years 1 to 9999, of which zones may take a day. */
  private static boolean fits(Object of) {
    if (of instanceof Object[]) {
      return Arrays.stream((Object[]) of).allMatch(FarTable::fits);
    }
    if (of instanceof Product) {
      Product made = (Product) of;
      return IntStream.range(0, made.productArity()).allMatch(i -> fits(made.productElement(i)));
    }
    int year = 2000;
    if (of instanceof Date) {
      year = ((Date) of).toLocalDate().getYear();
    } else if (of instanceof Timestamp) {
      year = ((Timestamp) of).toLocalDateTime().getYear();
    } else if (of instanceof LocalDate) {
      year = ((LocalDate) of).getYear();
    } else if (of instanceof LocalDateTime) {
      year = ((LocalDateTime) of).getYear();
    } else if (of instanceof Instant) {
      year = ((Instant) of).atZone(ZoneOffset.UTC).getYear();
    }
    return 1 < year && year < 9999;
  }

  /** Collects filters and columns. Python plans with all columns to say which filters it takes, then with those that are left. */
  private final class Builder implements SupportsPushDownFilters, SupportsPushDownRequiredColumns {
    private final CaseInsensitiveStringMap options;
    private ScanBuilder planned;
    private StructType required = schema;
    private Filter[] given = new Filter[0];

    Builder(CaseInsensitiveStringMap options) {
      this.options = options;
      planned = one(schema, options);
    }

    /** Spark before 4.1 pushes no filters into Python. Filters whose values Python does not hold stay with Spark. */
    @Override
    public Filter[] pushFilters(Filter[] filters) {
      Object made = planned;
      if (!(made instanceof SupportsPushDownFilters)) {
        given = filters;
        return filters;
      }
      given = Arrays.stream(filters).filter(FarTable::fits).toArray(Filter[]::new);
      List<Filter> left = new ArrayList<>();
      Arrays.stream(filters).filter(filter -> !fits(filter)).forEach(left::add);
      left.addAll(Arrays.asList(((SupportsPushDownFilters) made).pushFilters(given)));
      return left.toArray(new Filter[0]);
    }

    @Override
    public Filter[] pushedFilters() {
      Object made = planned;
      return made instanceof SupportsPushDownFilters
          ? ((SupportsPushDownFilters) made).pushedFilters()
          : new Filter[0];
    }

    @Override
    public void pruneColumns(StructType wanted) {
      required = wanted;
    }

    /** Columns of filters are among them, where Spark looks up their types. Python sends at least one column. */
    private StructType sent() {
      Set<String> filtered = new HashSet<>();
      for (Filter filter : given) {
        for (String[] name : filter.v2references()) {
          filtered.add(name[0]);
        }
      }
      List<StructField> made = new ArrayList<>();
      for (StructField field : schema.fields()) {
        if (filtered.contains(field.name())) {
          made.add(field);
        } else if (required.getFieldIndex(field.name()).isDefined()) {
          made.add(required.apply(field.name()));
        }
      }
      if (made.isEmpty()) {
        Comparator<StructField> narrow = Comparator.comparingInt(f -> f.dataType().defaultSize());
        made.add(Arrays.stream(schema.fields()).min(narrow).get());
      }
      return new StructType(made.toArray(new StructField[0]));
    }

    /** Spark has left out the filters that Python took with all columns: with fewer it has to take the same. */
    @Override
    public Scan build() {
      StructType columns = sent();
      if (columns.equals(schema)) {
        return planned.build();
      }
      ScanBuilder whole = planned;
      Filter[] taken = pushedFilters();
      planned = one(columns, options);
      if (given.length > 0) {
        pushFilters(given);
      }
      return (Arrays.equals(taken, pushedFilters()) ? planned : whole).build();
    }
  }
}
