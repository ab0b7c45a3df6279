package example;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.sink.SinkConnector;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;

/** Sink of the tests: writes a line per record into a file, with the password that it was given. */
public final class RecordingSink extends SinkConnector {
    private static final ConfigDef CONFIG =
            new ConfigDef()
                    .define("file", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "file to write")
                    .define("file.password", ConfigDef.Type.PASSWORD, ConfigDef.Importance.HIGH, "")
                    .define("fails", ConfigDef.Type.BOOLEAN, false, ConfigDef.Importance.LOW, "");

    private Map<String, String> settings;

    @Override
    public String version() {
        return "1";
    }

    @Override
    public void start(Map<String, String> given) {
        settings = given;
    }

    @Override
    public Class<? extends Task> taskClass() {
        return Writer.class;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int tasks) {
        return Collections.nCopies(tasks, settings);
    }

    @Override
    public void stop() {}

    @Override
    public ConfigDef config() {
        return CONFIG;
    }

    /** Task of the sink. */
    public static final class Writer extends SinkTask {
        private Map<String, String> settings;

        @Override
        public String version() {
            return "1";
        }

        @Override
        public void start(Map<String, String> given) {
            settings = given;
        }

        @Override
        public void put(Collection<SinkRecord> records) {
            if (records.isEmpty()) {
                return;
            }
            if (Boolean.parseBoolean(settings.get("fails"))) {
                throw new ConnectException("told to fail");
            }
            StringBuilder lines = new StringBuilder();
            for (SinkRecord record : records) {
                lines.append(settings.get("file.password")).append(' ').append(record.topic()).append('\n');
            }
            try {
                Files.writeString(
                        Path.of(settings.get("file")),
                        lines,
                        StandardOpenOption.CREATE,
                        StandardOpenOption.APPEND);
            } catch (IOException error) {
                throw new ConnectException(error);
            }
        }

        @Override
        public void stop() {}
    }
}
