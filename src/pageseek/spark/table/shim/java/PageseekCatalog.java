package io.pageseek.spark;

import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A catalog whose tables are named by their paths: {@code select * from pageseek.`/lake/events`}. */
public final class PageseekCatalog implements TableCatalog {
  private String name;

  @Override
  public void initialize(String name, CaseInsensitiveStringMap options) {
    this.name = name;
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public Table loadTable(Identifier path) throws NoSuchTableException {
    if (path.namespace().length > 0) {
      throw new NoSuchTableException(path);
    }
    return PageseekProvider.table(Map.of("path", path.name()), null);
  }

  @Override
  public Identifier[] listTables(String[] namespace) {
    return new Identifier[0];
  }

  @Override
  public Table alterTable(Identifier path, TableChange... changes) {
    throw readOnly();
  }

  @Override
  public boolean dropTable(Identifier path) {
    throw readOnly();
  }

  @Override
  public void renameTable(Identifier from, Identifier to) {
    throw readOnly();
  }

  private UnsupportedOperationException readOnly() {
    return new UnsupportedOperationException(name + ": tables that are named by paths are only read");
  }
}
