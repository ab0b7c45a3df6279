package cdclake.connect;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;

import io.debezium.connector.postgresql.UnchangedToastedReplicationMessageColumn;
import io.debezium.relational.Column;
import io.debezium.relational.ValueConverter;
import java.sql.Types;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.postgresql.core.Oid;

/** Tests that an array's converter gets a mark that it knows; the recording has every type. */
class UnsentDomainsTest {
    private static final Object UNSENT =
            UnchangedToastedReplicationMessageColumn.UNCHANGED_TOAST_VALUE;

    @Test
    void anUnsentDomainHasTheMarkOfItsBaseType() {
        assertEquals(
                UnchangedToastedReplicationMessageColumn.UNCHANGED_TEXT_ARRAY_TOAST_VALUE,
                marked(Oid.JSONB_ARRAY).convert(UNSENT));
        assertEquals(
                UnchangedToastedReplicationMessageColumn.UNCHANGED_BIGINT_ARRAY_TOAST_VALUE,
                marked(Oid.INT8_ARRAY).convert(UNSENT));
    }

    @Test
    void valuesAndOtherMarksStayAsTheyAre() {
        Object own = UnchangedToastedReplicationMessageColumn.UNCHANGED_TEXT_ARRAY_TOAST_VALUE;
        List<String> value = List.of("a");
        assertSame(own, marked(Oid.TEXT_ARRAY).convert(own));
        assertSame(value, marked(Oid.TEXT_ARRAY).convert(value));
        assertNull(marked(Oid.TEXT_ARRAY).convert(null));
    }

    @Test
    void typesWithoutAMarkKeepTheirConverter() {
        ValueConverter converter = value -> value;
        assertSame(converter, UnsentDomains.marked(column(Oid.TEXT), converter));
        assertSame(converter, UnsentDomains.marked(column(Oid.INT2_ARRAY), converter));
        assertNull(UnsentDomains.marked(column(Oid.TEXT_ARRAY), null));
    }

    private static ValueConverter marked(int type) {
        return UnsentDomains.marked(column(type), value -> value);
    }

    private static Column column(int type) {
        return Column.editor()
                .name("labels")
                .type("tags")
                .jdbcType(Types.ARRAY)
                .nativeType(type)
                .create();
    }
}
