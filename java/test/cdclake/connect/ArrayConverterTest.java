package cdclake.connect;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.debezium.connector.postgresql.UnchangedToastedReplicationMessageColumn;
import io.debezium.relational.Column;
import io.debezium.relational.CustomConverterRegistry;
import io.debezium.relational.TableId;
import io.debezium.relational.ValueConverter;
import io.debezium.spi.converter.ConvertedField;
import io.debezium.spi.converter.CustomConverter;
import java.sql.Types;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.errors.DataException;
import org.junit.jupiter.api.Test;
import org.postgresql.jdbc.PgArray;

/** Tests that every value of these arrays is converted, and nothing that is no such value. */
class ArrayConverterTest {
    private static final TableId TABLE = new TableId(null, "public", "t");
    private static final int NUMERICS = 1231;
    private static final int LABELS = 16_400;
    private static final String COLUMNS = "(?-i)public[.]other[.]x\\x2cy,(?-i)public[.]t[.]a";

    @Test
    void numbersThatAreNotFiniteHaveTheNamesThatDebeziumGivesThem() throws Exception {
        assertEquals(
                Arrays.asList("1.50", "NAN", null, "POSITIVE_INFINITY", "NEGATIVE_INFINITY", "-0.1"),
                converted("_numeric", NUMERICS, "{1.50,NaN,NULL,Infinity,-Infinity,-0.1}"));
    }

    @Test
    void aDomainOverNumbersHasTheirForm() throws Exception {
        List<String> expected = List.of("NAN", "NEGATIVE_INFINITY", "1.5");
        assertEquals(expected, converted("prices", NUMERICS, "{NaN,-Infinity,1.5}"));
    }

    @Test
    void labelsKeepTheirTextAndNullIsNoLabel() throws Exception {
        assertEquals(
                Arrays.asList("NULL", null, "", "NaN", "it's \"ok\" \\", "{a}", "a,b"),
                converted("_numeric", LABELS, "{\"NULL\",NULL,\"\",NaN,\"it's \\\"ok\\\" \\\\\",\"{a}\",\"a,b\"}"));
    }

    @Test
    void boundsAreLeftOutAndEmptyArraysStayEmpty() throws Exception {
        assertEquals(Arrays.asList("7", null), converted("_numeric", NUMERICS, "[5:6]={7,NULL}"));
        assertEquals(List.of(), converted("_numeric", NUMERICS, "{}"));
        assertNull(converter("a", Types.ARRAY, "_numeric", NUMERICS).orElseThrow().convert(null));
    }

    @Test
    void furtherDimensionsStayTexts() throws Exception {
        assertEquals(List.of("{1,2}", "{3,NULL}"), converted("_numeric", NUMERICS, "{{1,2},{3,NULL}}"));
        assertEquals(
                List.of("{{\"}\",a}}", "{{\"\\\"\",b}}"),
                converted("_mood", LABELS, "{{{\"}\",a}},{{\"\\\"\",b}}}"));
    }

    @Test
    void whatWasNotSentIsAnError() {
        ValueConverter converter = converter("a", Types.ARRAY, "_numeric", NUMERICS).orElseThrow();
        Object unsent = UnchangedToastedReplicationMessageColumn.UNCHANGED_TOAST_VALUE;
        assertThrows(DataException.class, () -> converter.convert(unsent));
        assertThrows(DataException.class, () -> converter.convert("{1}"));
    }

    @Test
    void otherColumnsAndTypesStayAsTheyAre() {
        assertTrue(converter("b", Types.ARRAY, "_numeric", NUMERICS).isEmpty());
        assertTrue(converter("a", Types.NUMERIC, "numeric", 1700).isEmpty());
        assertThrows(
                ConnectException.class, () -> new ArrayConverter().configure(new Properties()));
    }

    private static Object converted(String type, int base, String text) throws Exception {
        PgArray array = new PgArray(null, 0, text);
        return converter("a", Types.ARRAY, type, base).orElseThrow().convert(array);
    }

    private static Optional<ValueConverter> converter(String column, int jdbcType, String type, int base) {
        ArrayConverter ours = new ArrayConverter();
        Properties settings = new Properties();
        settings.putAll(Map.of(ArrayConverter.COLUMNS, COLUMNS));
        ours.configure(settings);
        CustomConverterRegistry registry = new CustomConverterRegistry(List.of(generic(ours)));
        Column described = described(column, jdbcType, type, base);
        registry.registerConverterFor(TABLE, described, null);
        return registry.getValueConverter(TABLE, described);
    }

    @SuppressWarnings({"unchecked", "rawtypes"}) // as Debezium loads converters
    private static CustomConverter<SchemaBuilder, ConvertedField> generic(ArrayConverter ours) {
        return (CustomConverter) ours;
    }

    /** Returns a column as Debezium describes it: of a domain with the identifier of its base type. */
    private static Column described(String name, int jdbcType, String type, int base) {
        return Column.editor().name(name).jdbcType(jdbcType).type(type).nativeType(base).create();
    }
}
