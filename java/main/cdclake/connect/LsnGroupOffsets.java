package cdclake.connect;

import io.debezium.connector.postgresql.SourceInfo;
import java.util.Map;
import org.apache.kafka.connect.source.SourceRecord;

/**
 * Offsets that send all records of an LSN again if Kafka does not have all of them.
 *
 * <p>Debezium gives each record the offset after its change. The delete, the tombstone and the
 * create of a changed key have the same one, so a stop between them resumes after all three. A stop
 * after the first row of a page that COPY wrote resumes after the page. So the records of one LSN
 * get the offset of the record before them (decision 75).
 */
final class LsnGroupOffsets {
    private Map<String, ?> before;
    private Map<String, ?> last;
    private Object lsn;

    /** Creates the offsets of a task that starts at the stored offset; null without one. */
    LsnGroupOffsets(Map<String, ?> stored) {
        last = stored;
    }

    /** Returns the next record with the offset to store once Kafka has it. */
    SourceRecord withOffset(SourceRecord record) {
        Map<String, ?> offset = record.sourceOffset();
        Object position = offset.get(SourceInfo.LSN_KEY);
        if (position == null) {
            return record; // a notification of no position
        }
        if (isBetweenChanges(offset)) {
            last = offset;
            lsn = null;
            return record;
        }
        if (!position.equals(lsn)) {
            before = last;
            lsn = position;
        }
        last = offset;
        return before == null ? record : copy(record, before);
    }

    /** Returns whether the offset is that of a snapshot or of a commit, with no change unsent. */
    private static boolean isBetweenChanges(Map<String, ?> offset) {
        Object message = offset.get(SourceInfo.MSG_TYPE_KEY);
        return message == null || message.equals("COMMIT");
    }

    private static SourceRecord copy(SourceRecord record, Map<String, ?> offset) {
        return new SourceRecord(
                record.sourcePartition(),
                offset,
                record.topic(),
                record.kafkaPartition(),
                record.keySchema(),
                record.key(),
                record.valueSchema(),
                record.value(),
                record.timestamp(),
                record.headers());
    }
}
