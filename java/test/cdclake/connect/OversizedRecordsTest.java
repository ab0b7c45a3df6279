package cdclake.connect;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.transforms.Transformation;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Tests what becomes of a record that is larger than Kafka takes, and that no other changes. */
class OversizedRecordsTest {
    private static final int LIMIT = 100_000;
    private static final Schema KEY = SchemaBuilder.struct().field("id", Schema.STRING_SCHEMA).build();
    private static final Schema ROW =
            SchemaBuilder.struct()
                    .optional()
                    .field("id", SchemaBuilder.string().optional().parameter("cdclake.required", "true"))
                    .field("body", Schema.OPTIONAL_STRING_SCHEMA)
                    .build();
    private static final Schema SOURCE =
            SchemaBuilder.struct()
                    .field("schema", Schema.STRING_SCHEMA)
                    .field("table", Schema.STRING_SCHEMA)
                    .field("lsn", Schema.INT64_SCHEMA)
                    .field("sequence", Schema.STRING_SCHEMA)
                    .build();
    private static final Schema ENVELOPE = EventSchemas.envelope(ROW, SOURCE);

    private final OversizedRecords<SourceRecord> transform = new OversizedRecords<>();

    @BeforeEach
    void configured() {
        transform.configure(Map.of(OversizedRecords.LIMIT, String.valueOf(LIMIT)));
    }

    @Test
    void aRecordWithinTheLimitStaysTheSameObject() {
        for (int characters : List.of(0, 1000, 20_000, 99_000)) {
            SourceRecord record = record("1", "c", null, row("1", "x".repeat(characters)));
            assertSame(record, transform.apply(record));
        }
    }

    @Test
    void aMillionNumbersThatFitStayTheSameObject() {
        SourceRecord record = numbers(Schema.OPTIONAL_INT32_SCHEMA, Collections.nCopies(1_000_000, 7));
        transform.configure(Map.of(OversizedRecords.LIMIT, "2001000"));
        assertTrue(record == transform.apply(record)); // a failure does not print a million numbers
    }

    @Test
    void numbersThatAreTooLargeOnlyAsAvroBecomeAMarker() {
        List<?> halves = Collections.nCopies(2_000_000, 0.5); // 8 MB as JSON, 18 MB as Avro
        transform.configure(Map.of(OversizedRecords.LIMIT, String.valueOf(16 << 20)));
        Struct value = (Struct) transform.apply(numbers(Schema.OPTIONAL_FLOAT64_SCHEMA, halves)).value();
        assertEquals("oversized", value.get("op"));
        assertEquals("numbers", value.getStruct("cdc_oversized").get("column"));
    }

    private static SourceRecord numbers(Schema element, List<?> elements) {
        Schema numbers = SchemaBuilder.array(element).build();
        Schema row = SchemaBuilder.struct().optional().field("numbers", numbers).build();
        Schema envelope =
                SchemaBuilder.struct()
                        .field("before", row)
                        .field("after", row)
                        .field("source", SOURCE)
                        .field("op", Schema.STRING_SCHEMA)
                        .build();
        Struct source =
                new Struct(SOURCE).put("schema", "s").put("table", "t").put("lsn", 1L).put("sequence", "");
        Struct value =
                new Struct(envelope)
                        .put("after", new Struct(row).put("numbers", elements))
                        .put("source", source)
                        .put("op", "c");
        return new SourceRecord(Map.of(), Map.of(), "t", KEY, key("1"), envelope, value);
    }

    @Test
    void aTombstoneAndARecordThatIsNoChangeStayTheSame() {
        SourceRecord tombstone = new SourceRecord(Map.of(), Map.of(), "t", KEY, key("1"), null, null);
        assertSame(tombstone, transform.apply(tombstone));
        SourceRecord text =
                new SourceRecord(
                        Map.of(), Map.of(), "t", null, null, Schema.STRING_SCHEMA, "x".repeat(LIMIT * 2));
        assertSame(text, transform.apply(text));
    }

    @Test
    void aRecordAboveTheLimitBecomesAMarkerWithKeyPlaceAndSize() {
        SourceRecord record = record("7", "c", null, row("7", "x".repeat(LIMIT)));
        SourceRecord marker = transform.apply(record);
        assertEquals("t", marker.topic());
        assertEquals(record.key(), marker.key());
        assertEquals(record.sourceOffset(), marker.sourceOffset());
        Struct value = (Struct) marker.value();
        assertEquals("oversized", value.get("op"));
        assertEquals("3", value.get("cdc_epoch"));
        assertEquals(((Struct) record.value()).get("source"), value.get("source"));
        Struct facts = value.getStruct("cdc_oversized");
        assertEquals("c", facts.get("op"));
        assertEquals(record.key(), facts.get("key"));
        assertEquals("body", facts.get("column"));
        assertEquals((long) LIMIT, facts.get("limit_bytes"));
        assertTrue((Long) facts.get("bytes") > LIMIT);
        String reason = (String) facts.get("reason");
        assertTrue(
                reason.startsWith("OVERSIZED_RECORD: public.big, key id=7, LSN 42: 100"), reason);
        assertTrue(reason.endsWith("limit of 100000; column body has 100004"), reason);
    }

    @Test
    void aMarkerHasNoPartOfTheRowAndFits() {
        Struct row = row("k".repeat(LIMIT / 9), "secret".repeat(LIMIT));
        SourceRecord marker = transform.apply(record("k".repeat(LIMIT / 9), "u", row, row));
        byte[] written = written(marker);
        assertTrue(written.length < LIMIT, () -> "the marker has " + written.length);
        assertTrue(!new String(written).contains("secret"));
    }

    @Test
    void aKeyThatIsTooLargeItselfIsLeftOutAndNamed() {
        String key = "k".repeat(2 * LIMIT);
        SourceRecord marker = transform.apply(record(key, "d", row(key, null), null));
        assertNull(marker.key());
        assertNull(marker.keySchema());
        Struct facts = ((Struct) marker.value()).getStruct("cdc_oversized");
        assertNull(facts.schema().field("key"));
        assertTrue(((String) facts.get("reason")).contains("a key of 2000"), facts.toString());
        assertTrue(written(marker).length < LIMIT);
    }

    @Test
    void anUpdateWhoseNewRowFitsKeepsARowBeforeItWithoutItsValues() {
        Struct half = row("1", "x".repeat(LIMIT * 2 / 3));
        SourceRecord smaller = transform.apply(record("1", "u", half, half));
        Struct value = (Struct) smaller.value();
        Struct before = value.getStruct("before");
        assertEquals("", before.get("id")); // Avro does not allow null
        assertNull(before.get("body"));
        assertEquals(half, value.get("after"));
        assertEquals("u", value.get("op"));
        assertEquals("3", value.get("cdc_epoch"));
        assertTrue(written(smaller).length < LIMIT);
    }

    @Test
    void aRowBeforeFitsTheSchemaWithoutItsValues() {
        Schema numbers = SchemaBuilder.array(Schema.FLOAT64_SCHEMA).build();
        Schema names = SchemaBuilder.map(Schema.STRING_SCHEMA, Schema.STRING_SCHEMA).build();
        Schema row =
                SchemaBuilder.struct()
                        .optional()
                        .field("count", Schema.INT64_SCHEMA)
                        .field("data", Schema.BYTES_SCHEMA)
                        .field("names", names)
                        .field("numbers", numbers)
                        .field("text", SchemaBuilder.string().optional().defaultValue("n").build())
                        .build();
        Schema envelope =
                SchemaBuilder.struct()
                        .field("before", row)
                        .field("after", row)
                        .field("source", SOURCE)
                        .field("op", Schema.STRING_SCHEMA)
                        .build();
        Struct source =
                new Struct(SOURCE).put("schema", "s").put("table", "t").put("lsn", 1L).put("sequence", "");
        Struct large =
                new Struct(row)
                        .put("count", 7L)
                        .put("data", new byte[LIMIT / 2])
                        .put("names", Map.of("a", "b".repeat(LIMIT)))
                        .put("numbers", Collections.nCopies(LIMIT, 0.5))
                        .put("text", "x");
        Struct small =
                new Struct(row)
                        .put("count", 8L)
                        .put("data", new byte[0])
                        .put("names", Map.of())
                        .put("numbers", List.of())
                        .put("text", "x");
        Struct value =
                new Struct(envelope).put("before", large).put("after", small).put("source", source).put("op", "u");
        SourceRecord record = new SourceRecord(Map.of(), Map.of(), "t", KEY, key("1"), envelope, value);
        Struct shortened = (Struct) transform.apply(record).value();
        shortened.validate();
        assertEquals("u", shortened.get("op"));
        assertEquals(7L, shortened.getStruct("before").get("count"));
        assertNull(shortened.getStruct("before").getWithoutDefault("text"));
    }

    @Test
    void aLargeHeaderCounts() {
        SourceRecord record = record("1", "c", null, row("1", "x"));
        record.headers().addString("__debezium.oldkey", "k".repeat(LIMIT));
        SourceRecord marker = transform.apply(record);
        assertEquals("oversized", ((Struct) marker.value()).get("op"));
        assertTrue(marker.headers().isEmpty());
    }

    @Test
    void withoutALimitTheConnectorIsNotConfigured() {
        assertThrows(ConfigException.class, () -> transform.configure(Map.of()));
        assertThrows(ConfigException.class, () -> transform.configure(Map.of("max.record.bytes", "0")));
    }

    @Test
    @SuppressWarnings("rawtypes") // as Connect loads its plugins
    void connectFindsTheTransform() {
        assertTrue(
                ServiceLoader.load(Transformation.class).stream()
                        .anyMatch(each -> each.type() == OversizedRecords.class));
    }

    private static byte[] written(SourceRecord record) {
        try (JsonConverter converter = new JsonConverter()) {
            converter.configure(Map.of("schemas.enable", "false"), false);
            return converter.fromConnectData("t", record.valueSchema(), record.value());
        }
    }

    private static Struct key(String id) {
        return new Struct(KEY).put("id", id);
    }

    private static Struct row(String id, String body) {
        return new Struct(ROW).put("id", id).put("body", body);
    }

    private static SourceRecord record(String id, String op, Struct before, Struct after) {
        Struct source =
                new Struct(SOURCE)
                        .put("schema", "public")
                        .put("table", "big")
                        .put("lsn", 42L)
                        .put("sequence", "[\"41\",\"42\"]");
        Struct value =
                new Struct(ENVELOPE)
                        .put("before", before)
                        .put("after", after)
                        .put("source", source)
                        .put("op", op)
                        .put("cdc_epoch", "3");
        return new SourceRecord(
                Map.of("server", "x"), Map.of("lsn", 42L), "t", KEY, key(id), ENVELOPE, value);
    }
}
