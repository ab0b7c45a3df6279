package cdclake.connect;

import io.debezium.bean.StandardBeanNames;
import io.debezium.bean.spi.BeanRegistry;
import io.debezium.bean.spi.BeanRegistryAware;
import io.debezium.processors.spi.PostProcessor;
import io.debezium.relational.Column;
import io.debezium.relational.RelationalDatabaseSchema;
import io.debezium.relational.TableSchemaBuilder;
import io.debezium.relational.ValueConverter;
import io.debezium.relational.ValueConverterProvider;
import java.lang.reflect.Field;
import java.util.Map;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.errors.ConnectException;

/**
 * Lets a row be without the value of a column that is NOT NULL, and marks unsent domains.
 *
 * <p>Debezium leaves out a value that it cannot convert, and then fails itself, because the row's
 * schema requires the value. It has no setting for its schemas. It gives its own objects to such a
 * processor before it builds the first one.
 */
public final class NullableColumns implements PostProcessor, BeanRegistryAware {
    private static final String REQUIRED = "cdclake.required";

    /** Returns whether the field's column is NOT NULL. */
    static boolean isRequired(Schema field) {
        return !field.isOptional()
                || field.parameters() != null && field.parameters().containsKey(REQUIRED);
    }

    @Override
    public void injectBeanRegistry(BeanRegistry beans) {
        Object schema =
                beans.lookupByName(StandardBeanNames.DATABASE_SCHEMA, RelationalDatabaseSchema.class);
        try {
            Object builder = field(RelationalDatabaseSchema.class, "schemaBuilder").get(schema);
            install((TableSchemaBuilder) builder);
        } catch (ReflectiveOperationException error) {
            throw new ConnectException("this version of Debezium builds its schemas otherwise", error);
        }
    }

    static void install(TableSchemaBuilder builder) throws ReflectiveOperationException {
        Field provider = field(TableSchemaBuilder.class, "valueConverterProvider");
        provider.set(builder, new OptionalFields((ValueConverterProvider) provider.get(builder)));
    }

    static Field field(Class<?> type, String name) throws NoSuchFieldException {
        Field field = type.getDeclaredField(name);
        field.setAccessible(true);
        return field;
    }

    @Override
    public void configure(Map<String, ?> settings) {}

    @Override
    public void apply(Object key, Struct value) {}

    @Override
    public void close() {}

    /** Debezium's converters, with optional fields that keep a sign of their column's NOT NULL. */
    private record OptionalFields(ValueConverterProvider own) implements ValueConverterProvider {
        @Override
        public SchemaBuilder schemaBuilder(Column column) {
            SchemaBuilder schema = own.schemaBuilder(column);
            // Debezium itself makes the field of a nullable column optional.
            boolean changes = schema != null && !column.isOptional() && !schema.isOptional();
            return changes ? schema.optional().parameter(REQUIRED, "true") : schema;
        }

        @Override
        public ValueConverter converter(Column column, org.apache.kafka.connect.data.Field field) {
            return UnsentDomains.marked(column, own.converter(column, field));
        }
    }
}
