package cdclake.connect;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.sink.SinkRecord;
import org.junit.jupiter.api.Test;

/** Tests that a delete in the Iceberg sink has the values that the source sent, and no others. */
class DeletedKeysTest {
    private static final Map<String, Object> KEY = Map.of("id", 5, "part", "a");
    private static final Map<String, Object> ROW =
            map("id", 5, "title", "", "part", "a", "rate", "0.00", "at", 0, "note", null);

    @Test
    void aDeleteHasOnlyItsKey() {
        SinkRecord record = record(KEY, event("d", "film"));
        SinkRecord changed = transform("public\\.whole").apply(record);
        Map<?, ?> event = (Map<?, ?>) changed.value();
        assertEquals(map("id", 5, "part", "a"), event.get("before"));
        List<String> fields = List.of("before", "after", "source", "op", "ts_ms");
        assertEquals(fields, List.copyOf(event.keySet()));
        assertEquals(Map.of("schema", "public", "table", "film"), event.get("source"));
        // Iceberg's transform writes the offset, and the key, into `_cdc`.
        assertEquals(7, changed.kafkaOffset());
        assertEquals(KEY, changed.key());
        assertEquals("shop.public.film", changed.topic());
        assertEquals(1234L, changed.timestamp());
        assertEquals("value", changed.headers().lastWithName("header").value());
        assertEquals(ROW, ((Map<?, ?>) record.value()).get("before"), "the record was changed");
    }

    @Test
    void aTableThatIsSentWholeKeepsItsRows() {
        DeletedKeys<SinkRecord> transform = transform("public\\.whole|public\\.a\\,b");
        for (String table : List.of("whole", "a,b")) {
            assertUnchanged(transform, record(KEY, event("d", table)));
        }
        for (String table : List.of("whole2", "a", "publicxwhole")) {
            Map<?, ?> event = (Map<?, ?>) transform.apply(record(KEY, event("d", table))).value();
            assertEquals(KEY, event.get("before"), table);
        }
    }

    @Test
    void everyOtherRecordStaysAsItIs() {
        DeletedKeys<SinkRecord> transform = transform("");
        for (String op : List.of("c", "u", "r", "t", "m")) {
            assertUnchanged(transform, record(KEY, event(op, "film")));
        }
        assertUnchanged(transform, record(KEY, null));
        assertUnchanged(transform, record(KEY, map("op", "d", "before", null)));
        assertUnchanged(transform, record(null, "text"));
    }

    @Test
    void aDeleteWithoutAKeyHasNoValues() {
        Object value = transform("").apply(record(null, event("d", "film"))).value();
        assertEquals(Map.of(), ((Map<?, ?>) value).get("before"));
    }

    private static void assertUnchanged(DeletedKeys<SinkRecord> transform, SinkRecord record) {
        assertSame(record, transform.apply(record));
    }

    private static DeletedKeys<SinkRecord> transform(String whole) {
        DeletedKeys<SinkRecord> transform = new DeletedKeys<>();
        transform.configure(whole.isEmpty() ? Map.of() : Map.of(DeletedKeys.WHOLE, whole));
        return transform;
    }

    private static Map<String, Object> event(String op, String table) {
        Map<String, Object> source = map("schema", "public", "table", table);
        return map("before", ROW, "after", null, "source", source, "op", op, "ts_ms", 1);
    }

    private static SinkRecord record(Object key, Object value) {
        return new SinkRecord(
                "shop.public.film",
                0,
                null,
                key,
                null,
                value,
                7,
                1234L,
                TimestampType.CREATE_TIME,
                new ConnectHeaders().addString("header", "value"));
    }

    private static Map<String, Object> map(Object... parts) {
        Map<String, Object> made = new LinkedHashMap<>();
        for (int at = 0; at < parts.length; at += 2) {
            made.put((String) parts[at], parts[at + 1]);
        }
        return made;
    }
}
