package cdclake.connect;

import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;

/** Marks whole events that cannot be written as declared; they are JSON in every format. */
final class RefusedEvent {
    /** Field with the reason. */
    static final String FIELD = "cdc_refused";

    private static final Schema REASON =
            SchemaBuilder.struct().optional().field("reason", Schema.STRING_SCHEMA).build();

    private RefusedEvent() {}

    /** Returns the event with the reason to quarantine it; null if the lake can read it. */
    static Struct marked(Struct event, String reason) {
        SchemaBuilder schema = SchemaBuilder.struct();
        for (Field field : event.schema().fields()) {
            schema.field(field.name(), field.schema());
        }
        schema.field(FIELD, REASON);
        Struct marked = new Struct(schema.build());
        for (Field field : event.schema().fields()) {
            marked.put(field.name(), event.getWithoutDefault(field.name()));
        }
        return marked.put(FIELD, reason == null ? null : new Struct(REASON).put("reason", reason));
    }
}
