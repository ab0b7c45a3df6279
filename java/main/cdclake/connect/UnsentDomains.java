package cdclake.connect;

import io.debezium.connector.postgresql.UnchangedToastedReplicationMessageColumn;
import io.debezium.relational.Column;
import io.debezium.relational.ValueConverter;
import org.postgresql.core.Oid;

/**
 * Marks for unsent large values of domains over arrays.
 *
 * <p>Debezium chooses its mark by the name of the column's type, and its converter by the base type of
 * a domain. An array's converter does not know the mark of other types and leaves the field NULL.
 */
final class UnsentDomains {
    private UnsentDomains() {}

    /** Returns the converter, which gets the mark of the column's base type. */
    static ValueConverter marked(Column column, ValueConverter converter) {
        Object mark = mark(column.nativeType()); // of a domain: its base type
        if (converter == null || mark == null) {
            return converter;
        }
        return value ->
                converter.convert(
                        value == UnchangedToastedReplicationMessageColumn.UNCHANGED_TOAST_VALUE
                                ? mark
                                : value);
    }

    private static Object mark(int type) {
        return switch (type) {
            case Oid.TEXT_ARRAY, Oid.VARCHAR_ARRAY, Oid.BPCHAR_ARRAY, Oid.JSON_ARRAY, Oid.JSONB_ARRAY ->
                    UnchangedToastedReplicationMessageColumn.UNCHANGED_TEXT_ARRAY_TOAST_VALUE;
            case Oid.BYTEA_ARRAY ->
                    UnchangedToastedReplicationMessageColumn.UNCHANGED_BINARY_ARRAY_TOAST_VALUE;
            case Oid.INT4_ARRAY, Oid.DATE_ARRAY ->
                    UnchangedToastedReplicationMessageColumn.UNCHANGED_INT_ARRAY_TOAST_VALUE;
            case Oid.INT8_ARRAY ->
                    UnchangedToastedReplicationMessageColumn.UNCHANGED_BIGINT_ARRAY_TOAST_VALUE;
            case Oid.UUID_ARRAY ->
                    UnchangedToastedReplicationMessageColumn.UNCHANGED_UUID_TOAST_VALUE;
            default -> null;
        };
    }
}
