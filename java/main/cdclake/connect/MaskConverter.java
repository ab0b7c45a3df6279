package cdclake.connect;

import io.debezium.connector.postgresql.UnchangedToastedReplicationMessageColumn;
import io.debezium.spi.converter.CustomConverter;
import io.debezium.spi.converter.RelationalColumn;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Properties;
import java.util.function.Function;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.errors.ConnectException;

/**
 * Masks of columns, applied to the values that PostgreSQL sent, and to no others.
 *
 * <p>Debezium's own masks run after it has replaced an unchanged TOAST value by its placeholder, so
 * they hash or cut the placeholder. Debezium gives this converter the raw value: an unchanged TOAST
 * value is an object of its own, which no stored text can equal. Hashes and cuts are those that
 * Debezium's masks would give; it has no other masks that this converter has.
 */
public final class MaskConverter implements CustomConverter<SchemaBuilder, RelationalColumn> {
    /** Salt of hashes, key of tokens; Debezium logs no values of settings with this ending. */
    static final String SALT = "salt.secret";

    /** Columns to hash, as regular expressions of their dotted names with commas between them. */
    static final String HASH = "hash";

    /** Columns to replace by tokens, which need the salt as their key. */
    static final String TOKEN = "token";

    /** Columns to replace by one text. */
    static final String REDACT = "redact";

    /** Columns of dates to set to the first day of their month. */
    static final String MONTH = "month";

    /** Columns to set to NULL. */
    static final String NULL = "null";

    /** Start of the settings with the columns to cut; the length follows. */
    static final String TRUNCATE = "truncate.";

    /** Text that stands for an unchanged TOAST value in events. */
    static final String PLACEHOLDER = "placeholder";

    private final Map<Pattern, Mask> masks = new LinkedHashMap<>();
    private String placeholder;

    @Override
    public void configure(Properties settings) {
        placeholder = required(settings, PLACEHOLDER);
        addSalted(settings, HASH, HashMask::new);
        addSalted(settings, TOKEN, TokenMask::new);
        add(settings.getProperty(REDACT), new RedactMask());
        add(settings.getProperty(MONTH), new MonthMask());
        add(settings.getProperty(NULL), new NullMask());
        for (String name : settings.stringPropertyNames()) {
            if (name.startsWith(TRUNCATE)) {
                int length = Integer.parseInt(name.substring(TRUNCATE.length()));
                add(settings.getProperty(name), new TruncateMask(length));
            }
        }
        if (masks.isEmpty()) {
            throw new ConnectException("no columns in the settings of " + MaskConverter.class.getName());
        }
    }

    @Override
    public void converterFor(RelationalColumn column, ConverterRegistration<SchemaBuilder> target) {
        String name = column.dataCollection() + "." + column.name();
        OptionalInt length = column.length();
        masks.entrySet().stream()
                .filter(each -> each.getKey().matcher(name).matches())
                .findFirst()
                .map(Map.Entry::getValue)
                .ifPresent(mask -> target.register(mask.schema(), value -> masked(value, mask, length)));
    }

    private Object masked(Object value, Mask mask, OptionalInt length) {
        if (value == null) {
            return null;
        }
        return UnchangedToastedReplicationMessageColumn.isUnchangedToastedValue(value)
                ? mask.unsent(placeholder)
                : mask.apply(value, length);
    }

    private void addSalted(Properties settings, String name, Function<byte[], Mask> mask) {
        String columns = settings.getProperty(name);
        if (columns != null) {
            add(columns, mask.apply(required(settings, SALT).getBytes(StandardCharsets.UTF_8)));
        }
    }

    private void add(String columns, Mask mask) {
        if (columns == null) {
            return;
        }
        Stream.of(columns.split(",")).map(Pattern::compile).forEach(each -> masks.put(each, mask));
    }

    private static String required(Properties settings, String name) {
        String value = settings.getProperty(name);
        if (value == null || value.isBlank()) {
            throw new ConnectException(
                    "setting " + name + " of " + MaskConverter.class.getName() + " is missing");
        }
        return value;
    }
}
