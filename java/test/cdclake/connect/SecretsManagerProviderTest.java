package cdclake.connect;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.Set;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.config.ConfigTransformer;
import org.apache.kafka.common.config.provider.ConfigProvider;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Tests the provider as Connect uses it, against a server that imitates Secrets Manager. */
final class SecretsManagerProviderTest {
    private static final String ARN =
            "arn:aws:secretsmanager:eu-west-1:111122223333:secret:shop/source-AbCdEf";
    private static final String PASSWORD = "tiger+7/=:${x}";
    private static final ObjectMapper JSON = new ObjectMapper();

    private final List<String> asked = new ArrayList<>();
    private final Map<String, String> answers =
            Map.of(
                    "shop/source", "{\"username\": \"cdclake_shop\", \"password\": \"" + PASSWORD + "\", \"port\": 5432}",
                    ARN, "{\"password\": \"of the arn\"}",
                    "broken", "{\"password\": hunter2}",
                    "text", "\"hunter2\"",
                    "empty", "",
                    "null", "{\"password\": null}");
    private final SecretsManagerProvider provider = new SecretsManagerProvider();
    private HttpServer server;

    @BeforeEach
    void start() throws IOException {
        System.setProperty("aws.accessKeyId", "test");
        System.setProperty("aws.secretAccessKey", "test");
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", this::answer);
        server.start();
        provider.configure(Map.of("region", "eu-west-1", "endpoint", endpoint()));
    }

    @AfterEach
    void stop() {
        provider.close();
        server.stop(0);
    }

    @Test
    void aReferenceIsReplacedByTheValueUnderItsKey() {
        assertEquals(PASSWORD, resolved("${secretsmanager:shop/source:password}"));
        assertEquals("jdbc:x?user=cdclake_shop", resolved("jdbc:x?user=${secretsmanager:shop/source:username}"));
    }

    @Test
    void anArnWorksAlthoughKafkaSplitsItAtColons() {
        assertEquals("of the arn", resolved("${secretsmanager:" + ARN + ":password}"));
        assertEquals(List.of(ARN), asked);
    }

    @Test
    void aValueThatIsNotTextIsReturnedAsWritten() {
        assertEquals("5432", resolved("${secretsmanager:shop/source:port}"));
    }

    @Test
    void severalKeysOfOneSecretAreOneRequest() {
        Map<String, String> data = provider.get("shop/source", Set.of("username", "password")).data();
        assertEquals(Map.of("username", "cdclake_shop", "password", PASSWORD), data);
        assertEquals(List.of("shop/source"), asked);
    }

    @Test
    void withoutKeysAllValuesAreReturned() {
        assertEquals(Set.of("username", "password", "port"), provider.get("shop/source").data().keySet());
    }

    @Test
    void aSecretIsReadEachTimeAndNeverTriggersARestart() {
        assertNull(provider.get("shop/source", Set.of("password")).ttl());
        provider.get("shop/source", Set.of("password"));
        assertEquals(2, asked.size());
    }

    @Test
    void aMissingKeyIsNamedWithItsSecret() {
        assertEquals(
                "the secret shop/source has no key `pasword`", refusal("${secretsmanager:shop/source:pasword}"));
        assertEquals("the secret null has no key `password`", refusal("${secretsmanager:null:password}"));
        assertEquals("the secret " + ARN + " has no key `user`", refusal("${secretsmanager:" + ARN + ":user}"));
    }

    @Test
    void aMissingSecretIsNamed() {
        String message = refusal("${secretsmanager:nobody/source:password}");
        assertTrue(message.startsWith("the secret nobody/source cannot be read: "), message);
        assertTrue(message.contains("can't find the specified secret"), message);
    }

    @Test
    void noMessageAndNoLogContainsTheSecret() {
        PrintStream out = System.out, err = System.err;
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        System.setOut(new PrintStream(said, true));
        System.setErr(new PrintStream(said, true));
        try {
            resolved("${secretsmanager:shop/source:password}");
            for (String name : List.of("broken", "text", "empty")) {
                ConfigException error = failure("${secretsmanager:" + name + ":password}");
                assertEquals("the secret " + name + " is not a JSON object", error.getMessage());
                assertNull(error.getCause());
                assertEquals(0, error.getSuppressed().length);
            }
        } finally {
            System.setOut(out);
            System.setErr(err);
        }
        assertTrue(said.toString().contains("GetSecretValue"), "the SDK logs nothing here");
        assertFalse(said.toString().contains("tiger"));
        assertFalse(said.toString().contains("hunter2"));
    }

    @Test
    void anUnreachableServerIsReportedWithTheSecretsName() {
        server.stop(0);
        String message = refusal("${secretsmanager:shop/source:password}");
        assertTrue(message.startsWith("the secret shop/source cannot be read: "), message);
    }

    @Test
    void connectFindsItAmongItsPlugins() {
        boolean found =
                ServiceLoader.load(ConfigProvider.class).stream()
                        .anyMatch(listed -> listed.type() == SecretsManagerProvider.class);
        assertTrue(found);
    }

    private String resolved(String value) {
        ConfigTransformer transformer = new ConfigTransformer(Map.of("secretsmanager", provider));
        return transformer.transform(Map.of("it", value)).data().get("it");
    }

    private ConfigException failure(String value) {
        return assertThrows(ConfigException.class, () -> resolved(value));
    }

    private String refusal(String value) {
        return failure(value).getMessage();
    }

    private String endpoint() {
        return "http://127.0.0.1:" + server.getAddress().getPort();
    }

    private void answer(HttpExchange exchange) throws IOException {
        String name = JSON.readTree(exchange.getRequestBody()).get("SecretId").asText();
        asked.add(name);
        String secret = answers.get(name);
        Map<String, String> body =
                secret == null
                        ? Map.of(
                                "__type", "ResourceNotFoundException",
                                "message", "Secrets Manager can't find the specified secret.")
                        : Map.of("Name", name, "SecretString", secret);
        byte[] written = JSON.writeValueAsBytes(body);
        exchange.getResponseHeaders().set("Content-Type", "application/x-amz-json-1.1");
        exchange.sendResponseHeaders(secret == null ? 400 : 200, written.length);
        exchange.getResponseBody().write(written);
        exchange.close();
    }
}
