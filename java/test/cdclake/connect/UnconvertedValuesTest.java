package cdclake.connect;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.transforms.Transformation;
import org.junit.jupiter.api.Test;

/** Tests that a value that is missing though its column is NOT NULL marks its event. */
class UnconvertedValuesTest {
    private static final Schema KEY = SchemaBuilder.struct().field("id", Schema.INT64_SCHEMA).build();
    private static final Schema NUMBERS =
            required(SchemaBuilder.array(Schema.OPTIONAL_INT16_SCHEMA))
                    .defaultValue(List.of((short) 1))
                    .build();
    private static final Schema PLACE =
            required(SchemaBuilder.struct().name("Point").field("x", Schema.FLOAT64_SCHEMA)).build();
    private static final Schema ROW =
            SchemaBuilder.struct()
                    .optional()
                    .name("shop.public.t.Value")
                    .field("id", required(SchemaBuilder.int64()).build())
                    .field("ns", NUMBERS)
                    .field("at", required(SchemaBuilder.string()).build())
                    .field("place", PLACE)
                    .field("note", Schema.OPTIONAL_STRING_SCHEMA)
                    .build();
    private static final Schema SOURCE =
            SchemaBuilder.struct().field("table", Schema.STRING_SCHEMA).build();
    private static final Schema ENVELOPE = EventSchemas.envelope(ROW, SOURCE);
    private static final String WHOLE =
            "{\"id\":1,\"ns\":[2],\"at\":\"00:00Z\",\"place\":{\"x\":0.5},\"note\":null}";

    private final UnconvertedValues<SourceRecord> transform = new UnconvertedValues<>();

    @Test
    void anEventWithAllRequiredValuesStaysTheSameObject() {
        for (SourceRecord record :
                List.of(
                        record("c", null, row()),
                        record("u", row(), row()),
                        record("d", row(), null),
                        record("t", null, null),
                        new SourceRecord(Map.of(), Map.of(), "t", KEY, key(), null, null),
                        new SourceRecord(Map.of(), Map.of(), "t", KEY, key(), KEY, key()))) {
            assertSame(record, transform.apply(record));
        }
    }

    @Test
    void missingValuesAreNullAndNamed() {
        Struct lacking = row("ns", "at", "place");
        SourceRecord record = record("c", null, lacking);
        SourceRecord marked = transform.apply(record);
        assertEquals(
                "{\"before\":null,\"after\":{\"id\":1,\"ns\":null,\"at\":null,\"place\":null,\"note\":null},"
                        + "\"source\":{\"table\":\"t\"},\"op\":\"c\",\"cdc_epoch\":\"3\",\"cdc_refused\":"
                        + "{\"reason\":\"UNCONVERTED_VALUE: no value of NOT NULL ns, at, place: "
                        + "Debezium cannot convert it, or the source did not send it\"}}",
                written(marked));
        assertSame(record.key(), marked.key());
        assertSame(record.keySchema(), marked.keySchema());
        assertEquals(record.sourceOffset(), marked.sourceOffset());
        assertEquals(record.topic(), marked.topic());
    }

    @Test
    void aRowBeforeWithoutAValueRefusesNothing() {
        Struct lacking = row("at");
        String before = WHOLE.replace("\"00:00Z\"", "null");
        String end = "\",\"cdc_epoch\":\"3\",\"cdc_refused\":null}";
        String update = written(transform.apply(record("u", lacking, row())));
        assertTrue(update.startsWith("{\"before\":" + before + ",\"after\":" + WHOLE), update);
        assertTrue(update.endsWith("\"op\":\"u" + end), update);
        String delete = written(transform.apply(record("d", lacking, null)));
        assertTrue(delete.startsWith("{\"before\":" + before + ",\"after\":null"), delete);
        assertTrue(delete.endsWith("\"op\":\"d" + end), delete);
    }

    @Test
    void aMarkedEventThatIsTooLargeLosesItsRowBeforeOrBecomesAMarker() {
        OversizedRecords<SourceRecord> oversized = new OversizedRecords<>();
        oversized.configure(Map.of(OversizedRecords.LIMIT, "4096"));
        Struct large = row("at").put("note", "x".repeat(5000));
        SourceRecord update = record("u", large, row("at"));
        String smaller = written(oversized.apply(transform.apply(update)));
        assertTrue(smaller.contains("\"cdc_refused\":{\"reason\":\"UNCONVERTED_VALUE"), smaller);
        SourceRecord insert = record("c", null, large);
        String marker = written(oversized.apply(transform.apply(insert)));
        assertTrue(marker.startsWith("{\"op\":\"oversized\""), marker);
    }

    @Test
    @SuppressWarnings("rawtypes") // as Connect loads its plugins
    void connectFindsTheTransform() {
        assertTrue(
                ServiceLoader.load(Transformation.class).stream()
                        .anyMatch(each -> each.type() == UnconvertedValues.class));
    }

    /** Returns a schema as {@link NullableColumns} changes it. */
    private static SchemaBuilder required(SchemaBuilder schema) {
        return schema.optional().parameter("cdclake.required", "true");
    }

    private static Struct key() {
        return new Struct(KEY).put("id", 1L);
    }

    /** Returns a row in which these columns are left out, as Debezium does it. */
    private static Struct row(String... unconverted) {
        Map<String, Object> values = new HashMap<>();
        values.put("id", 1L);
        values.put("ns", List.of((short) 2));
        values.put("at", "00:00Z");
        values.put("place", new Struct(PLACE).put("x", 0.5));
        values.keySet().removeAll(List.of(unconverted));
        Struct row = new Struct(ROW);
        values.forEach(row::put);
        return row;
    }

    private static SourceRecord record(String op, Struct before, Struct after) {
        Struct value =
                new Struct(ENVELOPE)
                        .put("before", before)
                        .put("after", after)
                        .put("source", new Struct(SOURCE).put("table", "t"))
                        .put("op", op)
                        .put("cdc_epoch", "3");
        return new SourceRecord(
                Map.of("server", "x"), Map.of("lsn", 42L), "t", KEY, key(), ENVELOPE, value);
    }

    private static String written(SourceRecord record) {
        try (JsonConverter converter = new JsonConverter()) {
            converter.configure(
                    Map.of("schemas.enable", "false", "replace.null.with.default", "false"), false);
            return text(converter.fromConnectData("t", record.valueSchema(), record.value()));
        }
    }

    private static String text(byte[] value) {
        return new String(value, StandardCharsets.UTF_8);
    }
}
