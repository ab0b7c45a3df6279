package cdclake.connect;

import io.debezium.connector.postgresql.UnchangedToastedReplicationMessageColumn;
import io.debezium.spi.converter.CustomConverter;
import io.debezium.spi.converter.RelationalColumn;
import java.sql.Array;
import java.sql.Types;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.function.UnaryOperator;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.errors.DataException;
import org.postgresql.core.Oid;

/**
 * Arrays of numeric and of enums, read from PostgreSQL's own text.
 *
 * <p>Debezium cannot convert an array of numeric with NaN or an infinity in it, nor an array of an
 * enum with a NULL in it. All other arrays get the form that Debezium gives them.
 */
public final class ArrayConverter implements CustomConverter<SchemaBuilder, RelationalColumn> {
    /** Columns of these arrays: regular expressions of their dotted names with commas between them. */
    static final String COLUMNS = "columns";

    private static final Map<String, String> NOT_FINITE =
            Map.of("NaN", "NAN", "Infinity", "POSITIVE_INFINITY", "-Infinity", "NEGATIVE_INFINITY");

    private List<Pattern> columns;

    @Override
    public void configure(Properties settings) {
        String named = settings.getProperty(COLUMNS, "");
        if (named.isBlank()) {
            throw new ConnectException("no columns in the settings of " + getClass().getName());
        }
        columns = Stream.of(named.split(",")).map(Pattern::compile).toList();
    }

    @Override
    public void converterFor(RelationalColumn column, ConverterRegistration<SchemaBuilder> target) {
        String name = column.dataCollection() + "." + column.name();
        boolean isOurs = columns.stream().anyMatch(each -> each.matcher(name).matches());
        if (!isOurs || column.jdbcType() != Types.ARRAY) {
            return;
        }
        UnaryOperator<String> form =
                column.nativeType() == Oid.NUMERIC_ARRAY // of a domain: its base type
                        ? element -> NOT_FINITE.getOrDefault(element, element)
                        : UnaryOperator.identity();
        target.register(schema(), value -> converted(value, form, name));
    }

    /** Return an optional list: a deletion has NULL for a NOT NULL column outside the key. */
    private static SchemaBuilder schema() {
        return SchemaBuilder.array(Schema.OPTIONAL_STRING_SCHEMA).optional();
    }

    private static List<String> converted(Object value, UnaryOperator<String> form, String name) {
        if (value == null) {
            return null;
        }
        if (UnchangedToastedReplicationMessageColumn.isUnchangedToastedValue(value)) {
            throw new DataException("PostgreSQL did not send " + name);
        }
        if (!(value instanceof Array)) {
            throw new DataException(name + " is no array but a " + value.getClass().getName());
        }
        return ArrayText.elements(value.toString()).stream()
                .map(element -> element == null ? null : form.apply(element))
                .toList();
    }
}
