package cdclake.connect;

import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.transforms.Transformation;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Marks change events without a value of a column that is NOT NULL, so that the lake refuses them.
 *
 * <p>Debezium leaves out what it cannot convert. All other events stay as they are.
 */
public final class UnconvertedValues<R extends ConnectRecord<R>> implements Transformation<R> {
    private static final Logger LOG = LoggerFactory.getLogger(UnconvertedValues.class);

    @Override
    public void configure(Map<String, ?> settings) {}

    @Override
    public R apply(R record) {
        if (!(record.value() instanceof Struct event) || event.schema().field("op") == null) {
            return record;
        }
        boolean lacks = lacks(row(event, "after"));
        if (!lacks && !lacks(row(event, "before"))) {
            return record;
        }
        // An update is complete without values of the row before, and a delete deletes.
        String reason = null;
        if (lacks) {
            reason = reason(row(event, "after"));
            LOG.error("topic {}: {}", record.topic(), reason);
        }
        Struct marked = RefusedEvent.marked(event, reason);
        return record.newRecord(
                record.topic(),
                record.kafkaPartition(),
                record.keySchema(),
                record.key(),
                marked.schema(),
                marked,
                record.timestamp(),
                record.headers());
    }

    private static Struct row(Struct event, String image) {
        boolean isThere = event.schema().field(image) != null;
        return isThere && event.get(image) instanceof Struct row ? row : null;
    }

    private static boolean lacks(Struct row) {
        if (row != null) {
            for (Field field : row.schema().fields()) {
                if (isMissing(row, field)) {
                    return true;
                }
            }
        }
        return false;
    }

    private static boolean isMissing(Struct row, Field field) {
        return NullableColumns.isRequired(field.schema())
                && row.getWithoutDefault(field.name()) == null;
    }

    private static String reason(Struct row) {
        List<String> columns =
                row.schema().fields().stream()
                        .filter(field -> isMissing(row, field))
                        .map(Field::name)
                        .toList();
        return "UNCONVERTED_VALUE: no value of NOT NULL "
                + String.join(", ", columns)
                + ": Debezium cannot convert it, or the source did not send it";
    }

    @Override
    public ConfigDef config() {
        return new ConfigDef();
    }

    @Override
    public void close() {}
}
