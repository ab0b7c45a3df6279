package cdclake.connect;

import io.debezium.config.CommonConnectorConfig;
import io.debezium.jdbc.JdbcConnection;
import io.debezium.pipeline.ChangeEventSourceCoordinator;
import io.debezium.pipeline.EventDispatcher;
import io.debezium.pipeline.signal.actions.SignalAction;
import io.debezium.pipeline.signal.actions.SignalActionProvider;
import io.debezium.pipeline.source.snapshot.incremental.AbstractIncrementalSnapshotChangeEventSource;
import io.debezium.pipeline.spi.Partition;
import io.debezium.relational.RelationalDatabaseConnectorConfig;
import io.debezium.spi.schema.DataCollectionId;
import java.lang.reflect.Field;
import java.util.Map;
import org.apache.kafka.connect.errors.ConnectException;

/**
 * Installer of {@link KeyTextChunks}; it provides no signal action.
 *
 * <p>Debezium has no setting for the queries of an incremental snapshot. It asks the providers of
 * signal actions after it has created the source of these snapshots, and before it reads a signal.
 */
public final class KeyTextChunksProvider implements SignalActionProvider {
    private static final Class<?> SOURCE = AbstractIncrementalSnapshotChangeEventSource.class;

    @Override
    public <P extends Partition> Map<String, SignalAction<P>> createActions(
            EventDispatcher<P, ? extends DataCollectionId> dispatcher,
            ChangeEventSourceCoordinator<P, ?> coordinator,
            CommonConnectorConfig config) {
        Object source = dispatcher.getIncrementalSnapshotChangeEventSource();
        if (SOURCE.isInstance(source)) {
            install(source, (RelationalDatabaseConnectorConfig) config);
        }
        return Map.of();
    }

    static void install(Object source, RelationalDatabaseConnectorConfig config) {
        try {
            JdbcConnection connection = (JdbcConnection) field("jdbcConnection").get(source);
            field("chunkQueryBuilder").set(source, new KeyTextChunks<>(config, connection));
        } catch (ReflectiveOperationException error) {
            throw new ConnectException("this version of Debezium builds its chunks otherwise", error);
        }
    }

    static Field field(String name) throws NoSuchFieldException {
        Field field = SOURCE.getDeclaredField(name);
        field.setAccessible(true);
        return field;
    }
}
