package cdclake.connect;

import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;

/**
 * Copies events to schemas that Avro can express without a change of meaning.
 *
 * <p>Names get escapes for characters that Avro does not allow. Optional fields lose their default,
 * because Connect's Avro converters would write it instead of NULL. Columns that are NOT NULL get
 * fields that are not optional: an event that lacks such a value is JSON. Defaults that are not finite
 * are left out, since Avro allows no text for them.
 */
final class AvroShape {
    /** Debezium keeps one schema object per table, until the table changes. */
    private static final int MAX_SCHEMAS = 10_000;

    private static final Pattern ESCAPE = Pattern.compile("_u[0-9a-f]{4}");

    private final Map<Schema, Schema> shaped = new IdentityHashMap<>();
    private final Map<Schema, Schema> events = new IdentityHashMap<>();
    private final boolean hasFingerprints;

    /** Creates a shape, with fingerprints of the schemas if the registry has only numbers of them. */
    AvroShape(boolean hasFingerprints) {
        this.hasFingerprints = hasFingerprints;
    }

    /** Returns the event with the shaped schema. */
    Struct of(Struct event) {
        if (!hasFingerprints) {
            return copied(event, schema(event.schema()));
        }
        if (events.size() >= MAX_SCHEMAS) {
            events.clear();
        }
        Schema schema =
                events.computeIfAbsent(
                        event.schema(), each -> SchemaFingerprint.added(schema(each)));
        return SchemaFingerprint.put(copied(event, schema));
    }

    private Schema schema(Schema schema) {
        Schema known = shaped.get(schema);
        if (known == null) {
            if (shaped.size() >= MAX_SCHEMAS) {
                shaped.clear();
            }
            known = built(schema);
            shaped.put(schema, known);
        }
        return known;
    }

    private Schema built(Schema schema) {
        SchemaBuilder builder =
                switch (schema.type()) {
                    case STRUCT -> SchemaBuilder.struct();
                    case ARRAY -> SchemaBuilder.array(schema(schema.valueSchema()));
                    case MAP -> SchemaBuilder.map(schema(schema.keySchema()), schema(schema.valueSchema()));
                    default -> SchemaBuilder.type(schema.type());
                };
        builder.version(schema.version());
        if (schema.name() != null) {
            builder.name(fullName(schema.name()));
        }
        if (!NullableColumns.isRequired(schema)) {
            builder.optional();
        } else if (schema.type().isPrimitive() && isInJson(schema.defaultValue())) {
            builder.defaultValue(schema.defaultValue());
        }
        if (schema.type() == Schema.Type.STRUCT) {
            for (Field field : schema.fields()) {
                builder.field(escaped(field.name()), schema(field.schema()));
            }
        }
        return builder.build();
    }

    private static boolean isInJson(Object value) {
        boolean isFinite = !(value instanceof Number number) || Double.isFinite(number.doubleValue());
        return value != null && isFinite;
    }

    private Struct copied(Struct from, Schema schema) {
        Struct copy = new Struct(schema);
        for (Field field : from.schema().fields()) {
            Field to = schema.fields().get(field.index());
            copy.put(to, value(from.getWithoutDefault(field.name()), to.schema()));
        }
        return copy;
    }

    private Object value(Object from, Schema schema) {
        if (from instanceof Struct struct) {
            return copied(struct, schema);
        }
        if (from instanceof List<?> items && schema.valueSchema().type() == Schema.Type.STRUCT) {
            return items.stream().map(item -> value(item, schema.valueSchema())).toList();
        }
        return from;
    }

    private static String fullName(String name) {
        StringBuilder full = new StringBuilder();
        for (String part : name.split("[.]", -1)) {
            full.append(full.isEmpty() ? "" : ".").append(escaped(part));
        }
        return full.toString();
    }

    /**
     * Returns a name that Avro allows: other characters become `_u` and their code unit in hex.
     *
     * <p>So does an underscore that would start such an escape; the lake's decoder reverts it.
     */
    static String escaped(String name) {
        StringBuilder escaped = new StringBuilder();
        for (int at = 0; at < name.length(); at++) {
            char unit = name.charAt(at);
            boolean isLetter = (unit >= 'a' && unit <= 'z') || (unit >= 'A' && unit <= 'Z');
            boolean isDigit = unit >= '0' && unit <= '9' && at > 0;
            boolean isUnderscore = unit == '_' && !ESCAPE.matcher(name).region(at, name.length()).lookingAt();
            if (isLetter || isDigit || isUnderscore) {
                escaped.append(unit);
            } else {
                escaped.append(String.format("_u%04x", (int) unit));
            }
        }
        return escaped.toString();
    }
}
