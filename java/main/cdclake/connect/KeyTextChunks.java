package cdclake.connect;

import io.debezium.data.SpecialValueDecimal;
import io.debezium.jdbc.JdbcConnection;
import io.debezium.pipeline.source.snapshot.incremental.IncrementalSnapshotContext;
import io.debezium.pipeline.source.snapshot.incremental.RowValueConstructorChunkQueryBuilder;
import io.debezium.relational.Column;
import io.debezium.relational.RelationalDatabaseConnectorConfig;
import io.debezium.relational.Table;
import io.debezium.spi.schema.DataCollectionId;
import java.math.BigDecimal;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Types;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import org.postgresql.util.PGobject;

/**
 * Debezium's queries for the chunks of an incremental snapshot, with the bounds as untyped text.
 *
 * <p>Debezium binds the last key of a chunk as the object that it read. The driver gives a text the
 * type {@code varchar}, for which {@code timestamptz} has no operator, and {@code citext} one with
 * another order, which would skip rows; it knows no type at all for Debezium's decimals. An untyped
 * text gets the column's own type from PostgreSQL, and with it the order of the query.
 */
final class KeyTextChunks<T extends DataCollectionId>
        extends RowValueConstructorChunkQueryBuilder<T> {
    KeyTextChunks(RelationalDatabaseConnectorConfig config, JdbcConnection connection) {
        super(config, connection);
    }

    @Override
    public String buildChunkQuery(
            IncrementalSnapshotContext<T> context, Table table, int limit, Optional<String> condition) {
        // The offset contains it; after a restart Debezium's own queries bind what is stored there.
        if (context.maximumKey().isPresent()) {
            context.maximumKey(texts(context.maximumKey().get()));
        }
        return super.buildChunkQuery(context, table, limit, condition);
    }

    @Override
    public Object[] resolveChunkEndPosition(
            IncrementalSnapshotContext<T> context, Table table, Object[] lastKey) {
        return texts(super.resolveChunkEndPosition(context, table, lastKey));
    }

    @Override
    public int bindBoundaryParams(
            PreparedStatement statement,
            List<Column> columns,
            Object[] key,
            int position,
            JdbcConnection connection)
            throws SQLException {
        int next = position;
        for (QueryParam bound : generateBoundaryParams(columns, texts(key))) {
            if (bound.value() instanceof String) {
                statement.setObject(next++, bound.value(), Types.OTHER);
            } else if (bound.value() != null) {
                statement.setObject(next++, bound.value());
            }
        }
        return next;
    }

    static Object[] texts(Object[] key) {
        if (key == null) {
            return null;
        }
        Object[] bounds = new Object[key.length];
        for (int index = 0; index < key.length; index++) {
            // The driver itself sends its dates and timestamps untyped, with infinities and years BC.
            boolean sent = key[index] == null || key[index] instanceof java.util.Date;
            bounds[index] = sent ? key[index] : text(key[index]);
        }
        return bounds;
    }

    private static String text(Object value) {
        if (value instanceof PGobject object) {
            return object.getValue();
        }
        if (value instanceof SpecialValueDecimal decimal) {
            return decimal.getDecimalValue()
                    .map(BigDecimal::toPlainString)
                    .orElseGet(() -> Double.toString(decimal.toDouble()));
        }
        if (value instanceof BigDecimal decimal) {
            return decimal.toPlainString();
        }
        if (value instanceof byte[] bytes) {
            return "\\x" + HexFormat.of().formatHex(bytes);
        }
        return value.toString();
    }
}
