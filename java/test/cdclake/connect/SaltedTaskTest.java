package cdclake.connect;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.debezium.config.Configuration;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.source.SourceConnector;
import org.junit.jupiter.api.Test;

/** Tests where the salt appears, and where it does not. */
class SaltedTaskTest {
    private static final String HASH = "column.mask.hash.v2.SHA-256.";
    private static final Map<String, String> SETTINGS =
            Map.of(
                    HASH + SaltedTask.PLACE, "public[.]people[.]email",
                    "column.truncate.to.3.chars", "public[.]people[.]phone",
                    SaltedTask.SALT, "pepper");

    @Test
    void debeziumGetsTheSaltInTheSettingsName() {
        Map<String, String> told = SaltedTask.salted(Configuration.from(SETTINGS)).asMap();
        assertEquals("public[.]people[.]email", told.get(HASH + "with.salt.pepper"));
        assertEquals("public[.]people[.]phone", told.get("column.truncate.to.3.chars"));
        assertEquals(2, told.size());
    }

    @Test
    void withoutASaltTheTaskDoesNotStart() {
        for (Map<String, String> settings : List.of(Map.of("a", "b"), Map.of(SaltedTask.SALT, " "))) {
            Configuration config = Configuration.from(settings);
            assertThrows(ConnectException.class, () -> SaltedTask.salted(config));
        }
    }

    @Test
    void loggedSettingsDoNotContainTheSalt() {
        String logged = Configuration.from(SETTINGS).withMaskedPasswords().asMap().toString();
        assertTrue(logged.contains(SaltedTask.SALT));
        assertFalse(logged.contains("pepper"));
    }

    @Test
    void connectFindsTheConnectorAndItsTask() {
        SourceConnector found =
                ServiceLoader.load(SourceConnector.class).stream()
                        .filter(each -> each.type() == SaltedConnector.class)
                        .findFirst()
                        .orElseThrow()
                        .get();
        assertEquals(SaltedTask.class, found.taskClass());
    }
}
