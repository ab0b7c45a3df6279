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
    private LsnGroupOffsets offsets;

    /** Starts the task, also again after an error; the thread is that of {@link #doPoll}. */
    @Override
    public ChangeEventSourceCoordinator<PostgresPartition, PostgresOffsetContext> start(
            Configuration config) {
        ChangeEventSourceCoordinator<PostgresPartition, PostgresOffsetContext> coordinator =
                super.start(config);
        String server = config.getString(CommonConnectorConfig.TOPIC_PREFIX);
        Map<String, String> partition = new PostgresPartition(server, "").getSourcePartition();
        // Not before Debezium reads it: offsets never go back behind its start.
        offsets = new LsnGroupOffsets(context.offsetStorageReader().offset(partition));
        return coordinator;
    }

    @Override
    public List<SourceRecord> doPoll() throws InterruptedException {
        List<SourceRecord> records = super.doPoll();
        records.replaceAll(offsets::withOffset);
        return records;
    }
}
