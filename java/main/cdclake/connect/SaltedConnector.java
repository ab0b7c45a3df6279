package cdclake.connect;

import io.debezium.connector.postgresql.PostgresConnector;
import org.apache.kafka.connect.connector.Task;

/**
 * Debezium's connector for PostgreSQL, whose hashes take their salt from a setting's value.
 *
 * <p>Debezium reads the salt in the name of a setting, where no reference can stand: whoever may
 * describe the connector would see it. Here the name has a place for it, {@link SaltedTask#PLACE},
 * and the task puts it in.
 */
public final class SaltedConnector extends PostgresConnector {
    @Override
    public Class<? extends Task> taskClass() {
        return SaltedTask.class;
    }
}
