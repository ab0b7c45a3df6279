package cdclake.connect;

import java.nio.charset.StandardCharsets;
import java.util.zip.CRC32;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;

/**
 * Adds a fingerprint of the schema to each event, and the same number to the schema as the default.
 *
 * <p>A registry with numbers, once replaced, gives a record's number to another schema, whose layout
 * may have the same bytes. The lake compares the two fingerprints. Schemas of the same layout may
 * share one.
 */
final class SchemaFingerprint {
    /** Field with the fingerprint. */
    static final String FIELD = "cdc_schema";

    private SchemaFingerprint() {}

    /** Returns the schema of an event with the field. */
    static Schema added(Schema schema) {
        SchemaBuilder builder = SchemaBuilder.struct().name(schema.name()).version(schema.version());
        if (schema.isOptional()) {
            builder.optional();
        }
        for (Field field : schema.fields()) {
            builder.field(field.name(), field.schema());
        }
        return builder.field(FIELD, SchemaBuilder.int32().defaultValue(of(schema)).build()).build();
    }

    /** Puts the schema's fingerprint into the event. */
    static Struct put(Struct event) {
        return event.put(FIELD, event.schema().field(FIELD).schema().defaultValue());
    }

    /** Returns the same number in each process: a new one would register a new version. */
    private static int of(Schema schema) {
        StringBuilder layout = new StringBuilder();
        describe(schema, layout);
        CRC32 digest = new CRC32();
        digest.update(layout.toString().getBytes(StandardCharsets.UTF_8));
        return (int) digest.getValue();
    }

    private static void describe(Schema schema, StringBuilder layout) {
        layout.append(schema.type()).append(schema.isOptional() ? "? " : " ").append(schema.name());
        switch (schema.type()) {
            case STRUCT -> {
                for (Field field : schema.fields()) {
                    layout.append(" {").append(field.name()).append(' ');
                    describe(field.schema(), layout);
                    layout.append('}');
                }
            }
            case MAP -> {
                layout.append(' ');
                describe(schema.keySchema(), layout);
                layout.append(' ');
                describe(schema.valueSchema(), layout);
            }
            case ARRAY -> {
                layout.append(' ');
                describe(schema.valueSchema(), layout);
            }
            default -> {}
        }
    }
}
