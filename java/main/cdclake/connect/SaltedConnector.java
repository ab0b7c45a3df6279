package cdclake.connect;

import io.debezium.connector.postgresql.PostgresConnector;
import org.apache.kafka.connect.connector.Task;

/**
 * Debezium's connector for PostgreSQL, with the salt of hashes in the value of a setting.
 *
 * <p>Debezium expects the salt in the name of a setting, which cannot contain a reference to a
 * secret: every user who can describe the connector would see the salt. Here the name contains the
 * placeholder {@link SaltedTask#PLACE}, which the task replaces.
 */
public final class SaltedConnector extends PostgresConnector {
    @Override
    public Class<? extends Task> taskClass() {
        return SaltedTask.class;
    }
}
