package io.pageseek.spark;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownAggregates;
import org.apache.spark.sql.connector.read.SupportsPushDownLimit;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Strategy$;
import org.apache.spark.sql.internal.connector.PredicateUtils;
import org.apache.spark.sql.internal.connector.SupportsPushDownCatalystFilters;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Collects what Spark pushes into a scan. Python says what of it is understood, and how the rest is read. */
final class PageseekScanBuilder
    implements ScanBuilder,
        SupportsPushDownCatalystFilters,
        SupportsPushDownRequiredColumns,
        SupportsPushDownLimit,
        SupportsPushDownAggregates {
  private static final Set<String> JOINING = Set.of("AND", "OR", "NOT");
  private static final Set<String> TESTS =
      Set.of("=", "<=>", "<>", "<", "<=", ">", ">=", "IN", "IS_NULL", "IS_NOT_NULL", "STARTS_WITH",
          "ENDS_WITH", "CONTAINS");

  private final PageseekTable table;
  private final CaseInsensitiveStringMap options;
  private final Planned planner;
  private StructType required;
  private Predicate[] given = new Predicate[0];
  private Predicate[] pushed = new Predicate[0];
  private Aggregation aggregation;
  private boolean complete;
  private int limit = -1;

  PageseekScanBuilder(PageseekTable table, CaseInsensitiveStringMap options) {
    this.table = table;
    this.options = options;
    this.planner = table.planner.planned("scan", "");
    this.required = table.schema();
  }

  /**
   * The answer of Python has a digit for each predicate: 1 where it is applied exactly. Spark applies the others, and what it
   * cannot say as a predicate.
   */
  @Override
  public Seq<org.apache.spark.sql.catalyst.expressions.Expression> pushFilters(
      Seq<org.apache.spark.sql.catalyst.expressions.Expression> filters) {
    List<org.apache.spark.sql.catalyst.expressions.Expression> left = new ArrayList<>();
    List<org.apache.spark.sql.catalyst.expressions.Expression> said = new ArrayList<>();
    List<Predicate> predicates = new ArrayList<>();
    for (org.apache.spark.sql.catalyst.expressions.Expression one :
        CollectionConverters.asJava(filters)) {
      Predicate predicate = predicate(one);
      if (predicate == null) {
        left.add(one);
      } else {
        said.add(one);
        predicates.add(predicate);
      }
    }
    given = predicates.toArray(new Predicate[0]);
    String applied = planner.text("accepts", Request.all(given).toString());
    List<Predicate> yes = new ArrayList<>();
    for (int i = 0; i < given.length; i++) {
      if (applied.charAt(i) == '1') {
        yes.add(given[i]);
      } else {
        left.add(said.get(i));
      }
    }
    pushed = yes.toArray(new Predicate[0]);
    return CollectionConverters.asScala(left).toSeq();
  }

  /** A filter as a predicate; null where it has none. Spark fails at some, such as CASE with a null of type boolean. */
  private static Predicate predicate(org.apache.spark.sql.catalyst.expressions.Expression one) {
    try {
      return DataSourceV2Strategy$.MODULE$.translateFilterV2(one).getOrElse(() -> null);
    } catch (AssertionError | RuntimeException failed) {
      return null;
    }
  }

  @Override
  public Predicate[] pushedFilters() {
    return pushed;
  }

  @Override
  public void pruneColumns(StructType schema) {
    required = schema;
  }

  @Override
  public boolean pushLimit(int rows) {
    limit = rows;
    return true;
  }

  /** Each task has the limit for itself, so that Spark applies it again. */
  @Override
  public boolean isPartiallyPushed() {
    return true;
  }

  @Override
  public boolean supportCompletePushDown(Aggregation wanted) {
    complete = !answer(wanted, true).isEmpty();
    return complete;
  }

  @Override
  public boolean pushAggregation(Aggregation wanted) {
    String schema = answer(wanted, complete);
    if (schema.isEmpty()) {
      return false;
    }
    aggregation = wanted;
    required = (StructType) DataType.fromJson(schema);
    return true;
  }

  /** The schema of an aggregation that Python computes, wholly or in parts; empty where it cannot. */
  private String answer(Aggregation wanted, boolean whole) {
    ObjectNode request = request();
    request.set("aggregation", Request.aggregation(wanted));
    request.put("whole", whole);
    return planner.text("aggregates", request.toString());
  }

  private ObjectNode request() {
    ObjectNode made = JsonNodeFactory.instance.objectNode();
    made.set("predicates", Request.all(pushed));
    made.set("given", Request.all(given));
    made.put("limit", limit);
    return made;
  }

  /** Spark asks for the scan of a stream as for that of a query: who asks is all that tells. Nothing is planned then. */
  @Override
  public Scan build() {
    Class<?> caller =
        StackWalker.getInstance(StackWalker.Option.RETAIN_CLASS_REFERENCE).getCallerClass();
    boolean streams = caller.getName().startsWith("org.apache.spark.sql.execution.streaming.");
    return streams && table.streamed != null ? new StreamScan(table, options) : planned();
  }

  private Scan planned() {
    ObjectNode request = request();
    request.put("schema", required.json());
    if (aggregation != null) {
      request.set("aggregation", Request.aggregation(aggregation));
      request.put("whole", complete);
    }
    String key = request.toString();
    Planned planned = planner.planned("plan", key);
    StructType schema = (StructType) DataType.fromJson(planned.text("schema", ""));
    switch (planned.text("way", "")) {
      case "local":
        return new DriverScan(planned, schema, key);
      case "native":
        return new PageseekScan(table, planned, schema, key, nativeScan(planned));
      default:
        return new PageseekScan(table, planned, schema, key, null);
    }
  }

  private NativeScan nativeScan(Planned planned) {
    return new NativeScan(
        table.session, planned.text("native", "[]"), required, filters());
  }

  /**
   * What Spark's reader may prune by. Spark makes wrong filters of comparisons with another column: only tests of one
   * column against values are given to it.
   */
  private Filter[] filters() {
    return PredicateUtils.toV1(
        Arrays.stream(given).filter(PageseekScanBuilder::isPlain).toArray(Predicate[]::new));
  }

  private static boolean isPlain(Expression one) {
    if (!(one instanceof Predicate)) {
      return false;
    }
    Expression[] of = one.children();
    if (JOINING.contains(((Predicate) one).name())) {
      return Arrays.stream(of).allMatch(PageseekScanBuilder::isPlain);
    }
    return TESTS.contains(((Predicate) one).name())
        && of[0] instanceof NamedReference
        && Arrays.stream(of).skip(1).allMatch(Literal.class::isInstance);
  }
}
