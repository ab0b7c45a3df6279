package cdclake.connect;

import java.util.OptionalInt;
import org.apache.kafka.connect.data.SchemaBuilder;

/** Mask of a column's values. */
interface Mask {
    /**
     * Return the masked value.
     *
     * @param value what PostgreSQL sent: neither NULL nor an unchanged TOAST value
     * @param length the column's declared length in characters, if it has one
     */
    Object apply(Object value, OptionalInt length);

    /** Return the value of an event whose value PostgreSQL did not send. */
    default Object unsent(String placeholder) {
        return placeholder;
    }

    /** Return an optional schema: a deletion has NULL for a NOT NULL column outside the key. */
    default SchemaBuilder schema() {
        return SchemaBuilder.string().optional();
    }
}
