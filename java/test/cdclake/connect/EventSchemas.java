package cdclake.connect;

import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;

/** Schemas of Debezium's events, as the transforms get them. */
final class EventSchemas {
    private EventSchemas() {}

    /** Returns the schema of a change event with the epoch that the connector adds. */
    static Schema envelope(Schema row, Schema source) {
        return SchemaBuilder.struct()
                .name("shop.public.t.Envelope")
                .field("before", row)
                .field("after", row)
                .field("source", source)
                .field("op", Schema.STRING_SCHEMA)
                .field("cdc_epoch", Schema.OPTIONAL_STRING_SCHEMA)
                .build();
    }
}
