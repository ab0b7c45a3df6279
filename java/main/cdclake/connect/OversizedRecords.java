package cdclake.connect;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.transforms.Transformation;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Replaces change events that are too large for Kafka by markers.
 *
 * <p>The producer would fail the connector's only task, and fail it again after every restart,
 * because PostgreSQL keeps the event. The marker has the event's key and place, so that the lake
 * refuses it under its table. Sizes are those of {@link RecordSize}; it must be the last transform.
 */
public final class OversizedRecords<R extends ConnectRecord<R>> implements Transformation<R> {
    /** Name of the setting with the greatest size of key, value and headers in bytes. */
    static final String LIMIT = "max.record.bytes";

    private static final Logger LOG = LoggerFactory.getLogger(OversizedRecords.class);
    private static final ConfigDef CONFIG =
            new ConfigDef()
                    .define(
                            LIMIT,
                            ConfigDef.Type.LONG,
                            ConfigDef.NO_DEFAULT_VALUE,
                            ConfigDef.Range.atLeast(4096),
                            ConfigDef.Importance.HIGH,
                            "Greatest size in bytes of a record's key, value and headers.");

    private long limit;

    @Override
    public void configure(Map<String, ?> settings) {
        limit = (Long) CONFIG.parse(settings).get(LIMIT);
    }

    @Override
    public R apply(R record) {
        // The cheap bound decides for nearly all records.
        long bound = RecordSize.bound(record.key()) + RecordSize.bound(record.value());
        if (bound + headerBytes(record) <= limit) {
            return record;
        }
        long bytes = bytesOf(record, record.value());
        if (bytes <= limit || !(record.value() instanceof Struct event) || !isChange(event)) {
            return record;
        }
        R smaller = withEmptyBefore(record, event);
        if (smaller != null) {
            return smaller;
        }
        OversizedMarker marker = new OversizedMarker(record.keySchema(), record.key(), event, limit);
        LOG.error("replaced by a marker, because it does not fit into Kafka: {}", marker.reason(bytes));
        return replaced(record, marker, marker.value(bytes));
    }

    /**
     * Returns an update with the row before it, but without that row's values; null if still too
     * large.
     *
     * <p>The decoders read none of its values in an update. That it is there tells them that the
     * source sent all values of the row after it.
     */
    private R withEmptyBefore(R record, Struct event) {
        if (!"u".equals(event.get("op")) || !(event.get("before") instanceof Struct before)) {
            return null;
        }
        Struct copied = new Struct(event.schema());
        for (Field field : event.schema().fields()) {
            copied.put(field, field.name().equals("before") ? emptied(before) : event.get(field));
        }
        return bytesOf(record, copied) > limit
                ? null
                : record.newRecord(
                        record.topic(),
                        record.kafkaPartition(),
                        record.keySchema(),
                        record.key(),
                        record.valueSchema(),
                        copied,
                        record.timestamp(),
                        record.headers());
    }

    /** Returns a row of the same schema, in which no value has more than a few bytes. */
    private static Struct emptied(Struct row) {
        Struct empty = new Struct(row.schema());
        for (Field field : row.schema().fields()) {
            boolean isRequired = NullableColumns.isRequired(field.schema());
            empty.put(field, isRequired ? emptyValue(row.getWithoutDefault(field.name())) : null);
        }
        return empty;
    }

    private static Object emptyValue(Object value) {
        if (value instanceof String) {
            return "";
        }
        if (value instanceof byte[] || value instanceof ByteBuffer) {
            return ByteBuffer.allocate(0);
        }
        if (value instanceof List) {
            return List.of();
        }
        return value instanceof Map ? Map.of() : value;
    }

    private R replaced(R record, OversizedMarker marker, Struct value) {
        return record.newRecord(
                record.topic(),
                record.kafkaPartition(),
                marker.keySchema(),
                marker.key(),
                value.schema(),
                value,
                record.timestamp(),
                new ConnectHeaders());
    }

    private static boolean isChange(Struct event) {
        return event.schema().field("source") != null
                && event.schema().field("op") != null
                && event.get("source") instanceof Struct;
    }

    private static long bytesOf(ConnectRecord<?> record, Object value) {
        return RecordSize.measured(record.key()) + RecordSize.measured(value) + headerBytes(record);
    }

    /** Returns a bound: the worker's converter of headers writes text without more escapes. */
    private static long headerBytes(ConnectRecord<?> record) {
        long bytes = 0;
        for (Header header : record.headers()) {
            bytes += RecordSize.measured(header.key()) + 2 * RecordSize.measured(header.value());
        }
        return bytes;
    }

    @Override
    public ConfigDef config() {
        return CONFIG;
    }

    @Override
    public void close() {}
}
