package cdclake.connect;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.transforms.Transformation;

/**
 * Removes the values of a deleted row that the source did not send, for Iceberg's sink.
 *
 * <p>Unless a table's replica identity is full, PostgreSQL sends only the key of a deleted row.
 * Debezium fills the other columns that are NOT NULL with zeros, empty texts or defaults.
 */
public final class DeletedKeys<R extends ConnectRecord<R>> implements Transformation<R> {
    /** Name of the setting that matches `schema.table` of the tables that are sent whole. */
    static final String WHOLE = "whole.regex";

    private static final ConfigDef CONFIG =
            new ConfigDef()
                    .define(
                            WHOLE,
                            ConfigDef.Type.STRING,
                            "",
                            ConfigDef.Importance.MEDIUM,
                            "Regular expression of the tables with the replica identity full.");

    private Pattern whole;

    @Override
    public void configure(Map<String, ?> settings) {
        whole = Pattern.compile((String) CONFIG.parse(settings).get(WHOLE));
    }

    @Override
    public R apply(R record) {
        if (!(record.value() instanceof Map<?, ?> event)
                || !"d".equals(event.get("op"))
                || !(event.get("before") instanceof Map<?, ?> before)
                || isWhole(event.get("source"))) {
            return record;
        }
        Map<Object, Object> sent = new LinkedHashMap<>(before);
        sent.keySet().retainAll(record.key() instanceof Map<?, ?> key ? key.keySet() : Set.of());
        Map<Object, Object> changed = new LinkedHashMap<>(event);
        changed.put("before", sent);
        return record.newRecord(
                record.topic(),
                record.kafkaPartition(),
                record.keySchema(),
                record.key(),
                record.valueSchema(),
                changed,
                record.timestamp(),
                record.headers());
    }

    private boolean isWhole(Object source) {
        return source instanceof Map<?, ?> from
                && whole.matcher(from.get("schema") + "." + from.get("table")).matches();
    }

    @Override
    public ConfigDef config() {
        return CONFIG;
    }

    @Override
    public void close() {}
}
