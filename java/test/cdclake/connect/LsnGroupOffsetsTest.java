package cdclake.connect;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.source.SourceRecord;
import org.junit.jupiter.api.Test;

/** Tests the offsets of records that Debezium sends one after the other. */
class LsnGroupOffsetsTest {
    private static final Map<String, Object> STORED = streamed("INSERT", 5, 1);

    private static Map<String, Object> streamed(String message, long lsn, long events) {
        return Map.of("lsn", lsn, "messageType", message, "lsn_events_processed", events);
    }

    private static SourceRecord record(Map<String, ?> offset) {
        return new SourceRecord(
                Map.of("server", "shop"), offset, "t", Schema.STRING_SCHEMA, "value");
    }

    /** Returns the offsets that records with these offsets get. */
    private static List<Map<String, ?>> stored(Map<String, ?> start, List<Map<String, ?>> offsets) {
        LsnGroupOffsets groups = new LsnGroupOffsets(start);
        List<Map<String, ?>> stored = new ArrayList<>();
        offsets.forEach(each -> stored.add(groups.withOffset(record(each)).sourceOffset()));
        return stored;
    }

    @Test
    void changedKeysAreStoredAsAWhole() {
        Map<String, ?> key = streamed("UPDATE", 10, 1);
        Map<String, ?> next = streamed("INSERT", 20, 1);
        assertEquals(
                List.of(STORED, STORED, STORED, key),
                stored(STORED, List.of(key, key, key, next)));
    }

    @Test
    void pagesOfCopyAreStoredAsAWhole() {
        Map<String, ?> first = streamed("INSERT", 10, 1);
        Map<String, ?> second = streamed("INSERT", 10, 2);
        Map<String, ?> third = streamed("INSERT", 10, 3);
        Map<String, ?> next = streamed("DELETE", 20, 1);
        // A heartbeat after the second row has the offset of that row.
        assertEquals(
                List.of(STORED, STORED, STORED, STORED, third),
                stored(STORED, List.of(first, second, second, third, next)));
    }

    @Test
    void aHeartbeatAfterACommitStoresIt() {
        Map<String, ?> row = streamed("INSERT", 10, 1);
        Map<String, ?> commit = Map.of("lsn", 20L, "lsn_commit", 20L, "messageType", "COMMIT");
        // The next change may begin at the byte where the commit ends.
        Map<String, ?> next = streamed("INSERT", 20, 1);
        assertEquals(
                List.of(STORED, commit, commit, commit, commit),
                stored(STORED, List.of(row, commit, commit, next, next)));
    }

    @Test
    void heartbeatsOfAnIdleSourceStoreNothingNew() {
        assertEquals(List.of(STORED, STORED), stored(STORED, List.of(STORED, STORED)));
        Map<String, ?> begun = Map.of("lsn", 7L, "messageType", "BEGIN");
        Map<String, ?> row = streamed("INSERT", 7, 1);
        assertEquals(List.of(STORED, STORED), stored(STORED, List.of(begun, row)));
    }

    @Test
    void rowsOfASnapshotKeepTheirOffsets() {
        Map<String, ?> row = Map.of("lsn", 5L, "snapshot", "INITIAL", "snapshot_completed", false);
        Map<String, ?> last = Map.of("lsn", 5L, "snapshot", "INITIAL", "snapshot_completed", true);
        Map<String, ?> heartbeat = Map.of("lsn", 5L);
        // The first change may have the LSN of the snapshot.
        Map<String, ?> key = streamed("UPDATE", 5, 1);
        Map<String, ?> next = streamed("INSERT", 8, 1);
        assertEquals(
                List.of(row, row, last, heartbeat, heartbeat, heartbeat, key),
                stored(null, List.of(row, row, last, heartbeat, key, key, next)));
    }

    @Test
    void chunksOfAnIncrementalSnapshotAreStoredAsAWhole() {
        Map<String, ?> opened = chunk(10, "0", null);
        Map<String, ?> first = chunk(20, "1", "INCREMENTAL");
        Map<String, ?> second = chunk(20, "2", "INCREMENTAL");
        Map<String, ?> closed = chunk(20, "2", null);
        Map<String, ?> ended = streamed("INSERT", 30, 1);
        Map<String, ?> next = streamed("INSERT", 40, 1);
        assertEquals(
                List.of(STORED, opened, opened, opened, closed, ended),
                stored(STORED, List.of(opened, first, second, closed, ended, next)));
    }

    private static Map<String, ?> chunk(long lsn, String key, String snapshot) {
        Map<String, Object> offset = new HashMap<>(streamed("INSERT", lsn, 1));
        offset.put("incremental_snapshot_primary_key", key);
        offset.put("snapshot", snapshot);
        return offset;
    }

    @Test
    void recordsOfNoPositionAndOfNoStoredOffsetStay() {
        LsnGroupOffsets groups = new LsnGroupOffsets(null);
        SourceRecord notification = record(Map.of());
        SourceRecord row = record(streamed("INSERT", 10, 1));
        assertSame(notification, groups.withOffset(notification));
        assertSame(row, groups.withOffset(row));
        assertSame(notification, groups.withOffset(notification));
        SourceRecord next = groups.withOffset(record(streamed("INSERT", 20, 1)));
        assertEquals(row.sourceOffset(), next.sourceOffset());
    }

    @Test
    void onlyTheOffsetOfARecordChanges() {
        SourceRecord row =
                new SourceRecord(
                        Map.of("server", "shop"), streamed("INSERT", 10, 1), "t", 3,
                        Schema.STRING_SCHEMA, "key", Schema.STRING_SCHEMA, "value", 7L);
        row.headers().addString("header", "x");
        SourceRecord sent = new LsnGroupOffsets(STORED).withOffset(row);
        assertEquals(
                row.toString().replace(row.sourceOffset().toString(), STORED.toString()),
                sent.toString());
        assertEquals(row.headers(), sent.headers());
        SourceRecord tombstone =
                new SourceRecord(
                        Map.of("server", "shop"), streamed("DELETE", 20, 1), "t", null,
                        Schema.STRING_SCHEMA, "key", null, null);
        assertNull(new LsnGroupOffsets(STORED).withOffset(tombstone).value());
    }
}
