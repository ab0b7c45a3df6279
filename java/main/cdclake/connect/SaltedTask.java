package cdclake.connect;

import io.debezium.config.Configuration;
import io.debezium.connector.common.CdcSourceTaskContext;
import io.debezium.connector.postgresql.PostgresConnectorConfig;
import io.debezium.connector.postgresql.PostgresConnectorTask;
import io.debezium.connector.postgresql.PostgresOffsetContext;
import io.debezium.connector.postgresql.PostgresPartition;
import io.debezium.pipeline.ChangeEventSourceCoordinator;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.connect.errors.ConnectException;

/**
 * Debezium's task, which is told the salt only when its settings have been logged.
 *
 * <p>It makes its context of the settings, which has the masks, before it starts: both are given the
 * salt, also when it starts again after an error.
 */
public final class SaltedTask extends PostgresConnectorTask {
    /** The setting with the salt; of a name that ends so Debezium logs no value. */
    static final String SALT = "cdclake.mask.salt.secret";

    /** Ends the names of settings that have the salt in its place. */
    static final String PLACE = "with.salt.cdclake";

    @Override
    public CdcSourceTaskContext<PostgresConnectorConfig> preStart(Configuration config) {
        return super.preStart(salted(config));
    }

    @Override
    public ChangeEventSourceCoordinator<PostgresPartition, PostgresOffsetContext> start(
            Configuration config) {
        return super.start(salted(config));
    }

    static Configuration salted(Configuration config) {
        String salt = config.getString(SALT);
        if (salt == null || salt.isBlank()) {
            throw new ConnectException("there is no salt in " + SALT + "; nothing is hashed without");
        }
        Map<String, String> told = new HashMap<>();
        for (Map.Entry<String, String> setting : config.asMap().entrySet()) {
            if (!setting.getKey().equals(SALT)) {
                told.put(with(salt, setting.getKey()), setting.getValue());
            }
        }
        return Configuration.from(told);
    }

    private static String with(String salt, String name) {
        String before = PLACE.substring(0, PLACE.lastIndexOf('.') + 1);
        return name.endsWith(PLACE)
                ? name.substring(0, name.length() - PLACE.length()) + before + salt
                : name;
    }
}
