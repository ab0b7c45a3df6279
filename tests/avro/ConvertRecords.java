import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.storage.Converter;

/**
 * Writes each record of its input with the JSON converter and with the configured one, in base64.
 *
 * <p>Arguments are settings `name=value` of the value's converter; a line of the input is a topic, a
 * tab and a record of the JSON converter with its schema.
 */
public final class ConvertRecords {
    public static void main(String[] arguments) throws Exception {
        Map<String, String> settings = new HashMap<>();
        for (String argument : arguments) {
            settings.put(
                    argument.substring(0, argument.indexOf('=')),
                    argument.substring(argument.indexOf('=') + 1));
        }
        JsonConverter reader = new JsonConverter();
        reader.configure(Map.of("schemas.enable", "true", "replace.null.with.default", "false"), false);
        JsonConverter json = new JsonConverter();
        json.configure(Map.of("schemas.enable", "false", "replace.null.with.default", "false"), false);
        Converter avro =
                (Converter)
                        Class.forName("cdclake.connect.TableConverter")
                                .getDeclaredConstructor()
                                .newInstance();
        avro.configure(settings, false);
        BufferedReader lines =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String topic = line.substring(0, line.indexOf('\t'));
            byte[] record = line.substring(line.indexOf('\t') + 1).getBytes(StandardCharsets.UTF_8);
            SchemaAndValue found = reader.toConnectData(topic, record);
            System.out.println(
                    text(json.fromConnectData(topic, found.schema(), found.value()))
                            + " "
                            + text(avro.fromConnectData(topic, found.schema(), found.value())));
        }
    }

    private static String text(byte[] value) {
        return Base64.getEncoder().encodeToString(value);
    }
}
