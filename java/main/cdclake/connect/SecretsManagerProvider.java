package cdclake.connect;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.net.URI;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.config.ConfigData;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.config.provider.ConfigProvider;
import software.amazon.awssdk.core.exception.SdkClientException;
import software.amazon.awssdk.core.exception.SdkException;
import software.amazon.awssdk.http.urlconnection.UrlConnectionHttpClient;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.secretsmanager.SecretsManagerClient;
import software.amazon.awssdk.services.secretsmanager.SecretsManagerClientBuilder;

/**
 * Configuration provider that reads values of Kafka Connect's settings from AWS Secrets Manager.
 *
 * <p>{@code ${secretsmanager:NAME:KEY}} is the value under KEY in the JSON object of the secret NAME,
 * which may be an ARN. A secret is read at each start of a connector and not cached. Nothing is
 * logged, and no message contains the content of a secret.
 *
 * <p>Parameters, optional if the environment sets them: {@code region}, and {@code endpoint} for
 * another Secrets Manager. The credentials come from the environment.
 */
public final class SecretsManagerProvider implements ConfigProvider {
    static final String REGION = "region";
    static final String ENDPOINT = "endpoint";

    private static final ObjectMapper JSON = new ObjectMapper();

    private SecretsManagerClient client;

    @Override
    public void configure(Map<String, ?> parameters) {
        SecretsManagerClientBuilder builder =
                SecretsManagerClient.builder().httpClientBuilder(UrlConnectionHttpClient.builder());
        if (parameters.get(REGION) instanceof String region) {
            builder.region(Region.of(region));
        }
        if (parameters.get(ENDPOINT) instanceof String endpoint) {
            builder.endpointOverride(URI.create(endpoint));
        }
        try {
            client = builder.build();
        } catch (SdkClientException error) {
            throw new ConfigException(
                    "cannot create a client of Secrets Manager: " + error.getMessage()
                            + "; set the provider's parameter `region`, or AWS_REGION");
        }
    }

    /** Returns all values of the secret. */
    @Override
    public ConfigData get(String name) {
        Map<String, String> values = new HashMap<>();
        read(name).fields().forEachRemaining(field -> values.put(field.getKey(), text(field.getValue())));
        return new ConfigData(values);
    }

    /** Returns the values of these keys; fails if one is missing. */
    @Override
    public ConfigData get(String name, Set<String> keys) {
        Map<String, String> values = new HashMap<>();
        Map<String, JsonNode> read = new HashMap<>();
        for (String key : keys) {
            Reference reference = Reference.of(name, key);
            JsonNode secret = read.computeIfAbsent(reference.secret(), this::read);
            JsonNode value = secret.get(reference.key());
            if (value == null || value.isNull()) {
                throw new ConfigException(
                        "the secret " + reference.secret() + " has no key `" + reference.key() + "`");
            }
            values.put(key, text(value));
        }
        return new ConfigData(values);
    }

    @Override
    public void close() {
        if (client != null) {
            client.close();
        }
    }

    private JsonNode read(String name) {
        String text;
        try {
            text = client.getSecretValue(request -> request.secretId(name)).secretString();
        } catch (SdkException error) {
            throw new ConfigException("the secret " + name + " cannot be read: " + error.getMessage());
        }
        if (text == null) {
            throw new ConfigException("the secret " + name + " is binary; it must be a JSON object");
        }
        return parse(name, text);
    }

    private static JsonNode parse(String name, String text) {
        JsonNode parsed = null;
        try {
            parsed = JSON.readTree(text);
        } catch (JsonProcessingException error) {
            // Neither rethrown nor kept as the cause: its message quotes the secret.
        }
        if (parsed == null || !parsed.isObject()) {
            throw new ConfigException("the secret " + name + " is not a JSON object");
        }
        return parsed;
    }

    private static String text(JsonNode value) {
        return value.isValueNode() ? value.asText() : value.toString();
    }

    /** Reference to a key; Kafka splits it at the first colon, so most of an ARN is in the key. */
    private record Reference(String secret, String key) {
        static Reference of(String path, String key) {
            int end = key.lastIndexOf(':');
            if (!path.equals("arn") || end < 0) {
                return new Reference(path, key);
            }
            return new Reference(path + ":" + key.substring(0, end), key.substring(end + 1));
        }
    }
}
