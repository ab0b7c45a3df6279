package cdclake.connect;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.errors.RetriableException;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.storage.Converter;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Writes the events of tables as Avro with a schema registry's converter, and all else as JSON.
 *
 * <p>The pipeline's own topics, markers and marked events stay JSON, which starts with a brace; Avro
 * with a registry's header never does. An event whose schema the registry refuses is JSON with the
 * reason, so that its table alone stops; a registry that does not answer is tried again.
 */
public final class TableConverter implements Converter {
    /** Name of the setting with the converter's class. */
    static final String AVRO = "avro.converter";

    /** Name of the setting with the topics that stay JSON. */
    static final String JSON_TOPICS = "json.topics";

    /** Name of the setting that adds fingerprints of the schemas. */
    static final String FINGERPRINTS = "schema.fingerprints";

    private static final Logger LOG = LoggerFactory.getLogger(TableConverter.class);
    private static final ConfigDef CONFIG =
            new ConfigDef()
                    .define(
                            AVRO,
                            ConfigDef.Type.STRING,
                            ConfigDef.NO_DEFAULT_VALUE,
                            ConfigDef.Importance.HIGH,
                            "Class of the registry's Avro converter.")
                    .define(
                            JSON_TOPICS,
                            ConfigDef.Type.LIST,
                            "",
                            ConfigDef.Importance.HIGH,
                            "Topics whose records stay JSON.")
                    .define(
                            FINGERPRINTS,
                            ConfigDef.Type.BOOLEAN,
                            false,
                            ConfigDef.Importance.HIGH,
                            "Add a fingerprint of its schema to each event.");

    private final JsonConverter json = new JsonConverter();
    private AvroShape shape;
    private Converter avro;
    private Set<String> jsonTopics = Set.of();

    @Override
    public ConfigDef config() {
        return CONFIG;
    }

    @Override
    public void configure(Map<String, ?> settings, boolean isKey) {
        Map<String, Object> parsed = CONFIG.parse(settings);
        jsonTopics =
                ((List<?>) parsed.get(JSON_TOPICS))
                        .stream().map(String::valueOf).collect(Collectors.toSet());
        shape = new AvroShape((Boolean) parsed.get(FINGERPRINTS));
        Map<String, Object> asJson = new HashMap<>(settings);
        asJson.put("schemas.enable", "false");
        json.configure(asJson, isKey);
        String name = (String) parsed.get(AVRO);
        try {
            // Of the same plugin: Connect itself does not list it.
            Class<?> found = Class.forName(name, true, getClass().getClassLoader());
            avro = Utils.newInstance(found.asSubclass(Converter.class));
        } catch (ClassNotFoundException | NoClassDefFoundError missing) {
            throw new ConfigException(
                    AVRO, name, "it is not in the plugin: run `make plugins` and deploy again");
        }
        avro.configure(settings, isKey);
    }

    @Override
    public byte[] fromConnectData(String topic, Schema schema, Object value) {
        if (jsonTopics.contains(topic) || !(value instanceof Struct event) || !isEvent(schema)) {
            return json.fromConnectData(topic, schema, value);
        }
        Struct shaped = shape.of(event);
        try {
            return avro.fromConnectData(topic, shaped.schema(), shaped);
        } catch (RuntimeException failure) {
            String reason = RegistryFailures.refusal(failure);
            if (reason != null) {
                LOG.error("topic {}: the registry refuses the schema: {}", topic, reason);
                Struct marked = RefusedEvent.marked(event, "SCHEMA_REFUSED: " + reason);
                return json.fromConnectData(topic, marked.schema(), marked);
            }
            LOG.error("topic {}: cannot write an event as Avro", topic, failure);
            if (RegistryFailures.isPassing(failure)) {
                throw new RetriableException("the schema registry does not answer", failure);
            }
            throw new DataException("topic " + topic + ": cannot write an event as Avro", failure);
        }
    }

    @Override
    public SchemaAndValue toConnectData(String topic, byte[] value) {
        boolean isJson = value == null || value.length == 0 || value[0] == '{';
        return isJson ? json.toConnectData(topic, value) : avro.toConnectData(topic, value);
    }

    /** Returns whether this is an event of Debezium, and neither a marker nor marked. */
    private static boolean isEvent(Schema schema) {
        return schema.field("op") != null
                && schema.field("after") != null
                && schema.field(OversizedMarker.FACTS) == null
                && schema.field(RefusedEvent.FIELD) == null;
    }
}
