package cdclake.connect;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.errors.RetriableException;
import org.apache.kafka.connect.storage.Converter;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Tests which records become Avro, in which form, and what becomes of a registry's failures. */
class TableConverterTest {
    private static final Schema PLACE =
            SchemaBuilder.struct().optional().field("länge", Schema.INT64_SCHEMA).build();
    private static final Schema ROW =
            SchemaBuilder.struct()
                    .name("my-shop.public.größe.Value")
                    .optional()
                    .field("id", Schema.INT64_SCHEMA)
                    .field("größe", SchemaBuilder.int32().optional().defaultValue(7).build())
                    .field("x_u00f6", SchemaBuilder.string().defaultValue("d").build())
                    .field("places", SchemaBuilder.array(PLACE).optional().build())
                    .build();
    private static final Schema ENVELOPE =
            SchemaBuilder.struct()
                    .field("after", ROW)
                    .field("op", Schema.STRING_SCHEMA)
                    .build();

    /** Stands for a registry's converter: it keeps what it gets, or fails. */
    public static final class KeptConverter implements Converter {
        static Struct kept;
        static RuntimeException failure;

        @Override
        public void configure(Map<String, ?> settings, boolean isKey) {}

        @Override
        public byte[] fromConnectData(String topic, Schema schema, Object value) {
            if (failure != null) {
                throw failure;
            }
            kept = (Struct) value;
            return new byte[] {3, 0};
        }

        @Override
        public SchemaAndValue toConnectData(String topic, byte[] value) {
            return SchemaAndValue.NULL;
        }
    }

    /** Has the name of what Apicurio's client throws for an incompatible schema. */
    private static final class RuleViolationException extends RuntimeException {
        private static final long serialVersionUID = 1;

        RuleViolationException(String message) {
            super(message);
        }
    }

    private final TableConverter converter = new TableConverter();

    @BeforeEach
    void configured() {
        KeptConverter.kept = null;
        KeptConverter.failure = null;
        converter.configure(settings(KeptConverter.class.getName()), false);
    }

    @Test
    void connectFindsIt() {
        assertTrue(
                ServiceLoader.load(Converter.class).stream()
                        .anyMatch(each -> each.type() == TableConverter.class));
    }

    @Test
    void anEventOfATableIsAvro() {
        assertArrayEquals(new byte[] {3, 0}, converted("shop.public.t", event(5)));
    }

    @Test
    void theTopicsOfThePipelineAndMarkersStayJson() {
        assertEquals("{\"after\":null,\"op\":\"c\"}", text(converted("beats", event(null))));
        Schema marker =
                SchemaBuilder.struct()
                        .field("op", Schema.STRING_SCHEMA)
                        .field("after", Schema.OPTIONAL_STRING_SCHEMA)
                        .field(OversizedMarker.FACTS, Schema.STRING_SCHEMA)
                        .build();
        Struct value = new Struct(marker).put("op", "oversized").put(OversizedMarker.FACTS, "f");
        assertTrue(text(converted("shop.public.t", value)).startsWith("{"));
        assertNull(converter.fromConnectData("shop.public.t", null, null));
    }

    @Test
    void markedEventsStayJson() {
        for (String reason : Arrays.asList("UNCONVERTED_VALUE: x", null)) {
            String mark = reason == null ? "null" : "{\"reason\":\"" + reason + "\"}";
            assertEquals(
                    "{\"after\":null,\"op\":\"c\",\"cdc_refused\":" + mark + "}",
                    text(converted("shop.public.t", RefusedEvent.marked(event(null), reason))));
        }
    }

    @Test
    void nullStaysNullWhateverTheDefaultIs() {
        converted("shop.public.t", event(null, 1L));
        Struct row = KeptConverter.kept.getStruct("after");
        assertNull(row.get("gr_u00f6_u00dfe"));
        assertNull(row.schema().field("gr_u00f6_u00dfe").schema().defaultValue());
    }

    @Test
    void aColumnThatIsNotNullHasNoOptionalField() {
        Schema count = SchemaBuilder.int32().optional().parameter("cdclake.required", "true").build();
        Schema row = SchemaBuilder.struct().optional().field("n", count).build();
        Schema envelope =
                SchemaBuilder.struct().field("after", row).field("op", Schema.STRING_SCHEMA).build();
        Struct value = new Struct(envelope).put("after", new Struct(row).put("n", 5)).put("op", "c");
        converted("shop.public.t", value);
        Struct kept = KeptConverter.kept.getStruct("after");
        assertEquals(Schema.INT32_SCHEMA, kept.schema().field("n").schema());
        assertEquals(5, kept.get("n"));
    }

    @Test
    void namesThatAvroDoesNotAllowAreEscapedAndOthersKept() {
        converted("shop.public.t", event(5, 1L));
        Schema row = KeptConverter.kept.getStruct("after").schema();
        assertEquals("my_u002dshop.public.gr_u00f6_u00dfe.Value", row.name());
        assertEquals("x_u005fu00f6", row.fields().get(2).name());
        List<Struct> places = KeptConverter.kept.getStruct("after").getArray("places");
        assertEquals(3L, places.get(0).get("l_u00e4nge"));
        assertNull(places.get(1));
        assertEquals("d", row.fields().get(2).schema().defaultValue());
        assertEquals("created_user", AvroShape.escaped("created_user"));
        assertEquals("_u0031st", AvroShape.escaped("1st"));
    }

    @Test
    void defaultsThatJsonDoesNotHaveAreLeftOut() {
        Schema row =
                SchemaBuilder.struct()
                        .field("ratio", SchemaBuilder.float64().defaultValue(Double.NaN).build())
                        .field("real", SchemaBuilder.float32().defaultValue(Float.NEGATIVE_INFINITY).build())
                        .field("price", SchemaBuilder.float64().defaultValue(1.5).build())
                        .build();
        Struct value = new Struct(row).put("ratio", 1.0).put("real", 1F).put("price", 2.0);
        converted("shop.public.t", eventOf(value));
        Schema kept = KeptConverter.kept.getStruct("after").schema();
        assertEquals(Schema.FLOAT64_SCHEMA, kept.field("ratio").schema());
        assertEquals(Schema.FLOAT32_SCHEMA, kept.field("real").schema());
        assertEquals(1.5, kept.field("price").schema().defaultValue());
    }

    @Test
    void aFingerprintIsThatOfTheLayout() {
        Map<String, String> settings = settings(KeptConverter.class.getName());
        settings.put(TableConverter.FINGERPRINTS, "true");
        converter.configure(settings, false);
        Schema text = Schema.STRING_SCHEMA;
        int first = fingerprint(SchemaBuilder.struct().field("a", text).field("b", text).build());
        int swapped = fingerprint(SchemaBuilder.struct().field("b", text).field("a", text).build());
        assertEquals(-1608485347, first);
        assertNotEquals(first, swapped);
    }

    @Test
    void anEventWhoseSchemaIsRefusedIsWholeAndHasTheReason() {
        KeptConverter.failure = new DataException("x", new RuleViolationException("incompatible \"a\""));
        String found = text(converted("shop.public.t", event(5, 1L)));
        assertTrue(found.startsWith("{\"after\":{\"id\":1,\"größe\":5,"), found);
        assertTrue(
                found.endsWith(
                        ",\"cdc_refused\":{\"reason\":\"SCHEMA_REFUSED: incompatible \\\"a\\\"\"}}"),
                found);
    }

    @Test
    void aRegistryThatDoesNotAnswerIsTriedAgain() {
        KeptConverter.failure = new DataException("x", new IOException("refused"));
        assertThrows(RetriableException.class, () -> converted("shop.public.t", event(5)));
    }

    @Test
    void anyOtherFailureFailsTheTask() {
        KeptConverter.failure = new IllegalStateException("a bug");
        DataException failed =
                assertThrows(DataException.class, () -> converted("shop.public.t", event(5)));
        assertTrue(failed.getMessage().contains("shop.public.t"));
    }

    @Test
    void aConverterThatIsNotInThePluginIsNamed() {
        String told =
                assertThrows(
                                ConfigException.class,
                                () -> new TableConverter().configure(settings("no.Such"), false))
                        .getMessage();
        assertTrue(told.contains("no.Such") && told.contains("make plugins"), told);
    }

    private static Map<String, String> settings(String avro) {
        Map<String, String> settings = new HashMap<>();
        settings.put(TableConverter.AVRO, avro);
        settings.put(TableConverter.JSON_TOPICS, "beats, signals");
        settings.put("replace.null.with.default", "false");
        return settings;
    }

    private static Struct event(Integer size, long id) {
        Struct row = new Struct(ROW).put("id", id).put("größe", size).put("x_u00f6", "v");
        row.put("places", Arrays.asList(new Struct(PLACE).put("länge", 3L), null));
        return new Struct(ENVELOPE).put("after", row).put("op", "c");
    }

    private static Struct event(Integer size) {
        return size == null ? new Struct(ENVELOPE).put("op", "c") : event(size, 1L);
    }

    private int fingerprint(Schema row) {
        converted("shop.public.t", eventOf(new Struct(row).put("a", "1").put("b", "2")));
        Schema schema = KeptConverter.kept.schema();
        assertEquals(SchemaFingerprint.FIELD, schema.fields().get(schema.fields().size() - 1).name());
        Object kept = KeptConverter.kept.get(SchemaFingerprint.FIELD);
        assertEquals(kept, schema.field(SchemaFingerprint.FIELD).schema().defaultValue());
        return (Integer) kept;
    }

    private static Struct eventOf(Struct row) {
        Schema envelope =
                SchemaBuilder.struct()
                        .field("after", row.schema())
                        .field("op", Schema.STRING_SCHEMA)
                        .build();
        return new Struct(envelope).put("after", row).put("op", "c");
    }

    private byte[] converted(String topic, Struct value) {
        return converter.fromConnectData(topic, value.schema(), value);
    }

    private static String text(byte[] value) {
        return new String(value, StandardCharsets.UTF_8);
    }
}
