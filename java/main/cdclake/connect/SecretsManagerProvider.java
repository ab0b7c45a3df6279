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
 * Values of Kafka Connect's configurations that stand in AWS Secrets Manager.
 *
 * <p>{@code ${secretsmanager:NAME:KEY}} is the value under KEY in the JSON object of the secret NAME,
 * which may be an ARN. A secret is read anew each time a connector starts, and kept nowhere; nothing
 * is logged, and no message repeats what a secret holds.
 *
 * <p>Parameters, none of them needed where the environment says it: {@code region}, and {@code
 * endpoint} of a Secrets Manager elsewhere. Credentials are those of the environment.
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
                    "Secrets Manager cannot be asked: " + error.getMessage()
                            + "; set the provider's parameter `region`, or AWS_REGION");
        }
    }

    /** Every value of the secret. */
    @Override
    public ConfigData get(String name) {
        Map<String, String> values = new HashMap<>();
        read(name).fields().forEachRemaining(field -> values.put(field.getKey(), text(field.getValue())));
        return new ConfigData(values);
    }

    /** The values under these keys; each of them must be there. */
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
            // Neither passed on nor kept as the cause: it quotes what it could not read.
        }
        if (parsed == null || !parsed.isObject()) {
            throw new ConfigException("the secret " + name + " is not a JSON object");
        }
        return parsed;
    }

    private static String text(JsonNode value) {
        return value.isValueNode() ? value.asText() : value.toString();
    }

    /** Kafka ends a reference's path at its first colon, so all of an ARN but `arn` is in the key. */
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
