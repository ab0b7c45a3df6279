package cdclake.connect;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import java.util.ServiceLoader;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.source.SourceConnector;
import org.junit.jupiter.api.Test;

/** Tests that Connect finds the class of older settings, and that these do not run. */
class SaltedConnectorTest {
    @Test
    void connectFindsItAndItDoesNotStart() {
        SourceConnector found =
                ServiceLoader.load(SourceConnector.class).stream()
                        .filter(each -> each.type() == SaltedConnector.class)
                        .findFirst()
                        .orElseThrow()
                        .get();
        assertEquals(SaltedConnector.class, found.getClass());
        String told =
                assertThrows(ConnectException.class, () -> found.start(Map.of())).getMessage();
        assertTrue(told.contains("`cdclake up FILE`"), told);
    }
}
