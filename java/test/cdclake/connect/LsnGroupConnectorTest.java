package cdclake.connect;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import org.apache.kafka.connect.source.SourceConnector;
import org.junit.jupiter.api.Test;

/** Tests that Connect finds the connector, and the settings of its task. */
class LsnGroupConnectorTest {
    @Test
    void connectFindsItWithItsTask() {
        SourceConnector found =
                ServiceLoader.load(SourceConnector.class).stream()
                        .filter(each -> each.type() == LsnGroupConnector.class)
                        .findFirst()
                        .orElseThrow()
                        .get();
        assertEquals(LsnGroupTask.class, found.taskClass());
    }

    @Test
    void debeziumSeesItsOwnConnector() {
        LsnGroupConnector connector = new LsnGroupConnector();
        connector.start(Map.of("connector.class", "cdclake.connect.LsnGroupConnector", "a", "b"));
        Map<String, String> settings =
                Map.of(
                        "connector.class",
                        "io.debezium.connector.postgresql.PostgresConnector",
                        "a",
                        "b");
        assertEquals(List.of(settings), connector.taskConfigs(1));
    }
}
