package cdclake.connect;

import java.util.stream.Collectors;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;

/**
 * Stand-in for a change event that is too large: its source block, epoch and key, but no row.
 *
 * <p>Its operation is none of Debezium's, so that a decoder that does not know it refuses it.
 */
final class OversizedMarker {
    /** Operation of a marker. */
    static final String OP = "oversized";

    /** Field with the facts about the event. */
    static final String FACTS = "cdc_oversized";

    private static final String EPOCH = "cdc_epoch";

    /** A marker has the key twice, and its text once more. */
    private static final int KEY_SHARE = 8;

    private static final int LONGEST_KEY_TEXT = 200;

    private final Schema keySchema;
    private final Object key;
    private final long keyBytes;
    private final boolean keyFits;
    private final Struct event;
    private final long limit;
    private final String column;
    private final long columnBytes;

    OversizedMarker(Schema keySchema, Object key, Struct event, long limit) {
        this.keyBytes = RecordSize.measured(key);
        this.keyFits = keyBytes <= limit / KEY_SHARE;
        this.keySchema = keyFits ? keySchema : null;
        this.key = keyFits ? key : null;
        this.event = event;
        this.limit = limit;
        String largest = null;
        long most = 0;
        for (String image : new String[] {"after", "before"}) {
            if (event.schema().field(image) == null || !(event.get(image) instanceof Struct row)) {
                continue;
            }
            for (Field field : row.schema().fields()) {
                long bytes = RecordSize.measured(row.get(field));
                if (bytes > most) {
                    largest = field.name();
                    most = bytes;
                }
            }
        }
        this.column = largest;
        this.columnBytes = most;
    }

    /** Returns the schema of the marker's key; null if the key is too large as well. */
    Schema keySchema() {
        return keySchema;
    }

    /** Returns the marker's key; null if it is too large as well. */
    Object key() {
        return key;
    }

    /** Returns the reason for which the lake refuses the event of this size. */
    String reason(long bytes) {
        Struct source = event.getStruct("source");
        String table = text(source, "schema") + "." + text(source, "table");
        String row = keyFits ? "key " + keyText() : "a key of " + keyBytes + " bytes, too large itself";
        String largest = column == null ? "" : "; column " + column + " has " + columnBytes;
        return "OVERSIZED_RECORD: "
                + String.format("%s, %s, LSN %s", table, row, text(source, "lsn"))
                + String.format(": %d bytes exceed Kafka's limit of %d%s", bytes, limit, largest);
    }

    /** Returns the marker's value. */
    Struct value(long bytes) {
        Struct facts = facts(bytes);
        boolean hasEpoch = event.schema().field(EPOCH) != null;
        SchemaBuilder schema =
                SchemaBuilder.struct()
                        .field("op", Schema.STRING_SCHEMA)
                        .field("source", event.schema().field("source").schema())
                        .field(FACTS, facts.schema());
        if (hasEpoch) {
            schema.field(EPOCH, event.schema().field(EPOCH).schema());
        }
        Struct marker =
                new Struct(schema.build())
                        .put("op", OP)
                        .put("source", event.get("source"))
                        .put(FACTS, facts);
        return hasEpoch ? marker.put(EPOCH, event.get(EPOCH)) : marker;
    }

    private Struct facts(long bytes) {
        SchemaBuilder schema =
                SchemaBuilder.struct()
                        .field("op", Schema.OPTIONAL_STRING_SCHEMA)
                        .field("bytes", Schema.INT64_SCHEMA)
                        .field("limit_bytes", Schema.INT64_SCHEMA)
                        .field("key_bytes", Schema.INT64_SCHEMA)
                        .field("column", Schema.OPTIONAL_STRING_SCHEMA)
                        .field("reason", Schema.STRING_SCHEMA);
        if (keySchema != null) {
            schema.field("key", keySchema);
        }
        Struct facts =
                new Struct(schema.build())
                        .put("op", event.get("op"))
                        .put("bytes", bytes)
                        .put("limit_bytes", limit)
                        .put("key_bytes", keyBytes)
                        .put("column", column)
                        .put("reason", reason(bytes));
        return keySchema == null ? facts : facts.put("key", key);
    }

    private String keyText() {
        String whole = String.valueOf(key);
        if (key instanceof Struct struct) {
            whole =
                    struct.schema().fields().stream()
                            .map(field -> field.name() + "=" + struct.get(field))
                            .collect(Collectors.joining(", "));
        }
        return whole.length() <= LONGEST_KEY_TEXT ? whole : whole.substring(0, LONGEST_KEY_TEXT) + "...";
    }

    private static String text(Struct source, String field) {
        return source.schema().field(field) == null ? "?" : String.valueOf(source.get(field));
    }
}
