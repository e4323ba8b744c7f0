package io.pageseek.spark;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Base64;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.GeneralScalarExpression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.aggregate.Avg;
import org.apache.spark.sql.connector.expressions.aggregate.Count;
import org.apache.spark.sql.connector.expressions.aggregate.CountStar;
import org.apache.spark.sql.connector.expressions.aggregate.Max;
import org.apache.spark.sql.connector.expressions.aggregate.Min;
import org.apache.spark.sql.connector.expressions.aggregate.Sum;
import org.apache.spark.unsafe.types.UTF8String;

/** Spark's expressions as JSON, which the planner in Python reads. */
final class Request {
  private static final JsonNodeFactory NODES = JsonNodeFactory.instance;

  private Request() {}

  /** Predicates, values of a filter, or columns, each as an object. */
  static ArrayNode all(Expression[] given) {
    ArrayNode made = NODES.arrayNode(given.length);
    for (Expression one : given) {
      made.add(expression(one));
    }
    return made;
  }

  static ObjectNode aggregation(Aggregation given) {
    ObjectNode made = NODES.objectNode();
    made.set("by", all(given.groupByExpressions()));
    ArrayNode functions = made.putArray("functions");
    for (AggregateFunc one : given.aggregateExpressions()) {
      functions.add(function(one));
    }
    return made;
  }

  private static ObjectNode function(AggregateFunc given) {
    ObjectNode made = NODES.objectNode();
    String name = "unknown";
    boolean distinct = false;
    if (given instanceof CountStar) {
      name = "count_all";
    } else if (given instanceof Count) {
      name = "count";
      distinct = ((Count) given).isDistinct();
    } else if (given instanceof Min) {
      name = "min";
    } else if (given instanceof Max) {
      name = "max";
    } else if (given instanceof Sum) {
      name = "sum";
      distinct = ((Sum) given).isDistinct();
    } else if (given instanceof Avg) {
      name = "avg";
      distinct = ((Avg) given).isDistinct();
    }
    made.put("name", distinct ? "distinct " + name : name);
    made.set("of", all(given.children()));
    return made;
  }

  private static ObjectNode expression(Expression given) {
    ObjectNode made = NODES.objectNode();
    if (given instanceof NamedReference) {
      ArrayNode path = made.putArray("column");
      for (String name : ((NamedReference) given).fieldNames()) {
        path.add(name);
      }
    } else if (given instanceof Literal) {
      Literal<?> literal = (Literal<?>) given;
      if (literal.value() instanceof UTF8String && !((UTF8String) literal.value()).isValid()) {
        return made.put("name", "a text that is not UTF-8");
      }
      made.put("type", literal.dataType().sql());
      made.put("value", text(literal.value()));
    } else if (given instanceof GeneralScalarExpression) {
      made.put("name", ((GeneralScalarExpression) given).name());
      made.set("of", all(given.children()));
    } else {
      made.put("name", given.getClass().getName());
    }
    return made;
  }

  /** A value of Spark's internal form; bytes in base 64, null as null. */
  private static String text(Object value) {
    if (value instanceof byte[]) {
      return Base64.getEncoder().encodeToString((byte[]) value);
    }
    return value == null ? null : value.toString();
  }
}
