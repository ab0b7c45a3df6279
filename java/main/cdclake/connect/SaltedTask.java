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
 * Debezium's task, which gets the salt only after its settings have been logged.
 *
 * <p>The task creates its context, which has the masks, from the settings before it starts. Context
 * and task both get the salt, also at a restart after an error.
 */
public final class SaltedTask extends PostgresConnectorTask {
    /** Name of the setting with the salt; Debezium logs no values of names with this ending. */
    static final String SALT = "cdclake.mask.salt.secret";

    /** End of the setting names that contain a placeholder for the salt. */
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
            throw new ConnectException("no salt in the setting " + SALT + "; values cannot be hashed");
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
