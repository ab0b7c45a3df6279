package cdclake.connect;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.debezium.config.Configuration;
import io.debezium.connector.postgresql.UnchangedToastedReplicationMessageColumn;
import io.debezium.relational.Column;
import io.debezium.relational.CustomConverterRegistry;
import io.debezium.relational.TableId;
import io.debezium.relational.ValueConverter;
import io.debezium.relational.mapping.ColumnMappers;
import java.sql.Types;
import java.time.LocalDate;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Properties;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.errors.ConnectException;
import org.junit.jupiter.api.Test;

/** Tests that values are masked as Debezium masks them, and unchanged TOAST values are not. */
class MaskConverterTest {
    private static final TableId PEOPLE = new TableId(null, "public", "people");
    private static final String SALT = "pepper";
    private static final String GONE = "__unsent_of_this_pipeline__";
    private static final String EMAIL = "(?-i)public[.]people[.]email";
    private static final String PHONE = "(?-i)public[.]people[.]phone";
    private static final String BORN = "(?-i)public[.]people[.]born";
    private static final String NAME = "(?-i)public[.]people[.]name";
    private static final String TAX = "(?-i)public[.]people[.]tax";
    private static final String WEIGHT = "(?-i)public[.]people[.]weight";
    private static final Map<String, String> SETTINGS =
            Map.of(
                    "month", BORN,
                    "redact", NAME,
                    "token", TAX,
                    "null", WEIGHT,
                    MaskConverter.HASH,
                            "(?-i)public[.]other[.](?:x\\x2cy|z),(?-i)public[.]people[.](?:e|email)",
                    MaskConverter.TRUNCATE + "3", PHONE,
                    MaskConverter.PLACEHOLDER, GONE,
                    MaskConverter.SALT, SALT);
    private static final List<String> TEXTS =
            List.of("", "a", "abc", "abcd", "Zoë Å", "a\u0000b", "😀😀😀😀", "a,b", GONE, "x".repeat(9000));
    // Lengths of text and varchar in the two sources of a column: the catalog and the relation.
    private static final List<Integer> LENGTHS =
            Arrays.asList(null, 0, 1, 2, 3, 4, 20, 63, 64, 65, 400, Integer.MAX_VALUE);

    @Test
    void hashesAreThoseOfDebezium() {
        ColumnMappers theirs =
                mappers(builder -> builder.maskStringsByHashingV2(EMAIL, "SHA-256", SALT));
        for (Integer length : LENGTHS) {
            assertEqualMasks(theirs, column("email", length));
        }
    }

    @Test
    void cutsAreThoseOfDebeziumWithoutHalfACharacter() {
        ColumnMappers theirs = mappers(builder -> builder.truncateStrings(PHONE, 3));
        for (Integer length : LENGTHS) {
            Column column = column("phone", length);
            ValueConverter debezium = theirs.mappingConverterFor(PEOPLE, column);
            ValueConverter ours = ours(column).orElseThrow();
            for (String text : TEXTS) {
                String cut = ((String) debezium.convert(text)).replaceFirst("[\\ud800-\\udbff]$", "");
                assertEquals(cut, ours.convert(text), column + ": " + text);
            }
        }
    }

    @Test
    void aCutKeepsNoHalfOfACharacter() {
        TruncateMask mask = new TruncateMask(3);
        assertEquals("ab", mask.apply("ab😀", OptionalInt.empty()));
        assertEquals("a😀", mask.apply("a😀b", OptionalInt.empty()));
        assertEquals("ab😀", mask.apply("ab😀", OptionalInt.of(3)));
        assertEquals("", new TruncateMask(1).apply("😀", OptionalInt.empty()));
    }

    @Test
    void unchangedToastValuesKeepTheirPlaceholder() {
        for (String name : List.of("email", "phone")) {
            ValueConverter ours = ours(column(name, null)).orElseThrow();
            assertEquals(
                    GONE,
                    ours.convert(UnchangedToastedReplicationMessageColumn.UNCHANGED_TOAST_VALUE));
            assertNull(ours.convert(null));
        }
    }

    @Test
    void unchangedToastValuesOfOtherMasksAreUnsentOrNull() {
        Object unsent = UnchangedToastedReplicationMessageColumn.UNCHANGED_TOAST_VALUE;
        for (String name : List.of("name", "tax")) {
            assertEquals(GONE, ours(column(name, null)).orElseThrow().convert(unsent));
        }
        assertNull(ours(column("weight", null)).orElseThrow().convert(unsent));
    }

    @Test
    void aTokenDependsOnKeyAndTextOnly() {
        // RFC 4231, test case 2.
        assertEquals(
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
                new TokenMask("Jefe".getBytes())
                        .apply("what do ya want for nothing?", OptionalInt.of(4)));
        for (Integer length : LENGTHS) {
            ValueConverter ours = ours(column("tax", length)).orElseThrow();
            assertEquals(new TokenMask(SALT.getBytes()).apply("12", OptionalInt.empty()), ours.convert(12));
            assertNull(ours.convert(null));
        }
    }

    @Test
    void everyValueIsRedactedOrNull() {
        ValueConverter redacted = ours(column("name", null)).orElseThrow();
        ValueConverter nothing = ours(column("weight", null)).orElseThrow();
        for (Object value : List.of("", "Zoë", 7, 1.5, true, new byte[] {1}, List.of(1))) {
            assertEquals("***", redacted.convert(value));
            assertNull(nothing.convert(value));
        }
        assertNull(redacted.convert(null));
    }

    @Test
    void aDateIsTheFirstOfItsMonth() {
        ValueConverter month = ours(column("born", null)).orElseThrow();
        LocalDate first = LocalDate.of(1987, 2, 1);
        for (LocalDate date : List.of(first, first.withDayOfMonth(17), first.withDayOfMonth(28))) {
            assertEquals((int) first.toEpochDay(), month.convert(date));
            assertEquals((int) first.toEpochDay(), month.convert(java.sql.Date.valueOf(date)));
        }
        LocalDate last = LocalDate.of(5_874_897, 12, 31);
        assertEquals((int) last.withDayOfMonth(1).toEpochDay(), month.convert(last));
        for (long infinity : new long[] {9223372036825200000L, -9223372036832400000L}) {
            java.sql.Date date = new java.sql.Date(infinity);
            assertEquals(io.debezium.time.Date.toEpochDay(date, null), month.convert(date));
        }
        assertNull(month.convert(null));
    }

    @Test
    void otherColumnsAreNotMasked() {
        assertTrue(ours(column("Email", null)).isEmpty());
        assertTrue(ours(column("email_2", null)).isEmpty());
        assertTrue(registered(new TableId(null, "public", "People"), column("email", null)).isEmpty());
    }

    @Test
    void aNameWithACommaIsOneColumn() {
        TableId other = new TableId(null, "public", "other");
        assertTrue(registered(other, column("x,y", null)).isPresent());
    }

    @Test
    void aColumnThatIsNotNullHasNoValueInADeletion() {
        MaskConverter converter = configured(SETTINGS);
        CustomConverterRegistry registry = new CustomConverterRegistry(List.of(generic(converter)));
        SchemaBuilder schema =
                registry.registerConverterFor(PEOPLE, column("email", null), null).orElseThrow();
        assertTrue(schema.isOptional());
        assertTrue(schema.optional().isOptional()); // Debezium says so again of nullable columns
    }

    @Test
    void aMissingSettingStopsTheTask() {
        for (String name : List.of(MaskConverter.SALT, MaskConverter.PLACEHOLDER)) {
            for (String value : Arrays.asList(null, " ")) {
                Map<String, String> settings = new HashMap<>(SETTINGS);
                settings.put(name, value);
                String told =
                        assertThrows(ConnectException.class, () -> configured(settings)).getMessage();
                assertTrue(told.contains(name), told);
            }
        }
        Map<String, String> none = Map.of(MaskConverter.PLACEHOLDER, GONE);
        assertThrows(ConnectException.class, () -> configured(none));
    }

    @Test
    void theSaltIsInNoLog() {
        String setting = "cdclake.mask." + MaskConverter.SALT;
        Configuration config = Configuration.from(Map.of(setting, SALT));
        assertFalse(config.withMaskedPasswords().asMap().toString().contains(SALT));
        assertFalse(new HashMask(SALT.getBytes()).toString().contains(SALT));
        assertFalse(new TokenMask(SALT.getBytes()).toString().contains(SALT));
    }

    private static void assertEqualMasks(ColumnMappers theirs, Column column) {
        ValueConverter expected = theirs.mappingConverterFor(PEOPLE, column);
        ValueConverter ours = ours(column).orElseThrow();
        for (String text : TEXTS) {
            assertEquals(expected.convert(text), ours.convert(text), column + ": " + text);
        }
    }

    private static ColumnMappers mappers(java.util.function.Consumer<ColumnMappers.Builder> add) {
        ColumnMappers.Builder builder =
                new ColumnMappers.Builder(table -> table.schema() + "." + table.table());
        add.accept(builder);
        return builder.build();
    }

    private static Column column(String name, Integer length) {
        io.debezium.relational.ColumnEditor editor =
                Column.editor().name(name).type("text").jdbcType(Types.VARCHAR).optional(false);
        return (length == null ? editor : editor.length(length)).create();
    }

    private static Optional<ValueConverter> ours(Column column) {
        return registered(PEOPLE, column);
    }

    private static Optional<ValueConverter> registered(TableId table, Column column) {
        CustomConverterRegistry registry =
                new CustomConverterRegistry(List.of(generic(configured(SETTINGS))));
        registry.registerConverterFor(table, column, null);
        return registry.getValueConverter(table, column);
    }

    private static MaskConverter configured(Map<String, String> settings) {
        Properties properties = new Properties();
        settings.forEach(
                (name, value) -> {
                    if (value != null) {
                        properties.setProperty(name, value);
                    }
                });
        MaskConverter converter = new MaskConverter();
        converter.configure(properties);
        return converter;
    }

    /** Return the converter as Debezium's registry, which reads it by reflection, takes it. */
    @SuppressWarnings({"unchecked", "rawtypes"})
    private static io.debezium.spi.converter.CustomConverter<
                    SchemaBuilder, io.debezium.spi.converter.ConvertedField>
            generic(MaskConverter converter) {
        return (io.debezium.spi.converter.CustomConverter) converter;
    }
}
