package cdclake.connect;

import io.debezium.config.CommonConnectorConfig;
import io.debezium.connector.postgresql.PostgresConnector;
import java.util.List;
import java.util.Map;
import org.apache.kafka.connect.connector.Task;

/** Debezium's connector with {@link LsnGroupTask}: no stop of it loses a change (decision 75). */
public final class LsnGroupConnector extends PostgresConnector {
    @Override
    public Class<? extends Task> taskClass() {
        return LsnGroupTask.class;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int maxTasks) {
        List<Map<String, String>> tasks = super.taskConfigs(maxTasks);
        // Debezium selects a connector's queries and locks of snapshots by exactly its own class.
        tasks.forEach(
                task ->
                        task.put(
                                CommonConnectorConfig.CONNECTOR_CLASS,
                                PostgresConnector.class.getName()));
        return tasks;
    }
}
