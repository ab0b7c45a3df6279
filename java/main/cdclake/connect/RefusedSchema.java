package cdclake.connect;

import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;

/** Marks whole events whose schema the registry refuses, so that a replay can accept them. */
final class RefusedSchema {
    /** Field with the reason. */
    static final String FIELD = "cdc_refused";

    private static final Schema REASON =
            SchemaBuilder.struct().field("reason", Schema.STRING_SCHEMA).build();

    private RefusedSchema() {}

    /** Returns the event with the reason. */
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
        return marked.put(FIELD, new Struct(REASON).put("reason", "SCHEMA_REFUSED: " + reason));
    }
}
