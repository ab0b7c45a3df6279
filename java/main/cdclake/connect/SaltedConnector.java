package cdclake.connect;

import io.debezium.connector.postgresql.PostgresConnector;
import java.util.Map;
import org.apache.kafka.connect.errors.ConnectException;

/**
 * Class that connectors of cdclake 0.1 have in their stored settings; it only refuses to start.
 *
 * <p>Connect reads and stops such a connector, and replaces its settings, only if it finds the
 * class. The settings must not run again: they are for masks that also mask Debezium's placeholder.
 */
public final class SaltedConnector extends PostgresConnector {
    @Override
    public void start(Map<String, String> settings) {
        throw new ConnectException(
                "the connector has the settings of cdclake 0.1; run `cdclake up FILE` to replace them");
    }
}
