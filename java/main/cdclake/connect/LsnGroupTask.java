package cdclake.connect;

import io.debezium.config.CommonConnectorConfig;
import io.debezium.config.Configuration;
import io.debezium.connector.postgresql.PostgresConnectorTask;
import io.debezium.connector.postgresql.PostgresOffsetContext;
import io.debezium.connector.postgresql.PostgresPartition;
import io.debezium.pipeline.ChangeEventSourceCoordinator;
import java.util.List;
import java.util.Map;
import org.apache.kafka.connect.source.SourceRecord;

/** Debezium's task, whose records have the offsets of {@link LsnGroupOffsets}. */
public final class LsnGroupTask extends PostgresConnectorTask {
    private Map<String, String> partition;
    private LsnGroupOffsets offsets;

    /** Starts the task; the thread of {@link #doPoll} starts it again after an error. */
    @Override
    public ChangeEventSourceCoordinator<PostgresPartition, PostgresOffsetContext> start(
            Configuration config) {
        String server = config.getString(CommonConnectorConfig.TOPIC_PREFIX);
        partition = new PostgresPartition(server, "").getSourcePartition();
        offsets = null;
        return super.start(config);
    }

    @Override
    public List<SourceRecord> doPoll() throws InterruptedException {
        List<SourceRecord> records = super.doPoll();
        if (offsets == null && !records.isEmpty()) {
            // Debezium has read it before, so the offsets do not go back behind its start.
            offsets = new LsnGroupOffsets(context.offsetStorageReader().offset(partition));
        }
        records.replaceAll(record -> offsets.withOffset(record));
        return records;
    }
}
