package cdclake.connect;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.json.JsonConverter;
import org.junit.jupiter.api.Test;

/** Tests that a computed size is never below what the converter writes, and hardly above it. */
class RecordSizeTest {
    private static final long EMPTY = RecordSize.measured(List.of());
    private static final Schema LIST = SchemaBuilder.array(Schema.OPTIONAL_STRING_SCHEMA).build();
    private static final Schema MAP =
            SchemaBuilder.map(Schema.STRING_SCHEMA, Schema.OPTIONAL_STRING_SCHEMA).build();
    private static final Schema PAIRS =
            SchemaBuilder.map(Schema.INT32_SCHEMA, Schema.BOOLEAN_SCHEMA).build();
    private static final Schema INNER =
            SchemaBuilder.struct().optional().field("\"é\n", Schema.BYTES_SCHEMA).build();
    private static final Schema ALL =
            SchemaBuilder.struct()
                    .field("text", Schema.OPTIONAL_STRING_SCHEMA)
                    .field("bytes", Schema.BYTES_SCHEMA)
                    .field("long", Schema.INT64_SCHEMA)
                    .field("double", Schema.FLOAT64_SCHEMA)
                    .field("float", Schema.FLOAT32_SCHEMA)
                    .field("truth", Schema.BOOLEAN_SCHEMA)
                    .field("list", LIST)
                    .field("map", MAP)
                    .field("pairs", PAIRS)
                    .field("inner", INNER)
                    .build();

    @Test
    void theMeasuredSizeIsThatOfTheConverterOrAFewBytesPerValueMore() {
        Random random = new Random(7);
        for (int round = 0; round < 300; round++) {
            Struct value = value(random, round * 10);
            long written = written(value);
            long measured = RecordSize.measured(value);
            assertTrue(measured >= written, () -> measured + " < " + written + ": " + value);
            assertTrue(measured <= written + 300, () -> measured + " >> " + written);
            assertTrue(RecordSize.bound(value) >= measured);
        }
    }

    @Test
    void arraysOfScalarsHaveTheSizeThatTheConverterWrites() {
        Object[][] lists = {
            {Schema.OPTIONAL_INT32_SCHEMA, 0, -1, Integer.MIN_VALUE, null},
            {Schema.OPTIONAL_INT64_SCHEMA, 7L, Long.MIN_VALUE, null},
            {Schema.OPTIONAL_BOOLEAN_SCHEMA, true, false, null},
            {Schema.OPTIONAL_FLOAT32_SCHEMA, -0f, 1e-45f, Float.NaN, Float.NEGATIVE_INFINITY},
            {Schema.OPTIONAL_FLOAT64_SCHEMA, 1.234567, -Double.MAX_VALUE, 1d / 0},
        };
        for (Object[] list : lists) {
            Schema schema = SchemaBuilder.array((Schema) list[0]).build();
            List<Object> values = Arrays.asList(list).subList(1, list.length);
            long expected = written(schema, values);
            long measured = RecordSize.measured(values);
            assertTrue(expected <= measured && measured <= expected + 3, values + ": " + measured);
            assertTrue(RecordSize.bound(values) >= measured);
        }
    }

    @Test
    void aShortFloatingPointNumberHasItsSizeInAvro() {
        // The number of the union's type, and the number itself.
        for (double number : List.of(0.5, 1e300, Double.NaN)) {
            assertEquals(9000 + EMPTY, RecordSize.measured(Collections.nCopies(1000, number)));
        }
        assertEquals(5000 + EMPTY, RecordSize.measured(Collections.nCopies(1000, 0.5f)));
    }

    private static Struct value(Random random, int longest) {
        byte[] bytes = new byte[random.nextInt(longest + 1)];
        random.nextBytes(bytes);
        Object[] numbers = {Long.MIN_VALUE, -Double.MAX_VALUE, -Float.MIN_VALUE};
        return new Struct(ALL)
                .put("text", random.nextInt(9) == 0 ? null : text(random, longest))
                .put("bytes", bytes)
                .put("long", numbers[0])
                .put("double", numbers[1])
                .put("float", numbers[2])
                .put("truth", false)
                .put("list", List.of(text(random, 9), text(random, longest)))
                .put("map", Map.of(text(random, 9), text(random, longest)))
                .put("pairs", Map.of(Integer.MIN_VALUE, true, 2, false))
                .put("inner", new Struct(INNER).put("\"é\n", ByteBuffer.wrap(bytes)));
    }

    private static String text(Random random, int longest) {
        int[] kinds = {0x20, 0x80, 0x800, 0xD800, 0x110000};
        StringBuilder text = new StringBuilder();
        for (int left = random.nextInt(longest + 1); left > 0; left--) {
            int character = random.nextInt(kinds[random.nextInt(kinds.length)]);
            boolean isHalf = character >= 0xD800 && character < 0xE000;
            text.appendCodePoint(isHalf ? '"' : character);
        }
        return text.toString();
    }

    private static long written(Struct value) {
        return written(value.schema(), value);
    }

    private static long written(Schema schema, Object value) {
        try (JsonConverter converter = new JsonConverter()) {
            converter.configure(Map.of("schemas.enable", "false"), false);
            return converter.fromConnectData("t", schema, value).length;
        }
    }
}
