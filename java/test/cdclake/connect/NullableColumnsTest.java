package cdclake.connect;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.debezium.config.CommonConnectorConfig.EventConvertingFailureHandlingMode;
import io.debezium.relational.Column;
import io.debezium.relational.CustomConverterRegistry;
import io.debezium.relational.RelationalDatabaseSchema;
import io.debezium.relational.Table;
import io.debezium.relational.TableId;
import io.debezium.relational.TableSchema;
import io.debezium.relational.TableSchemaBuilder;
import io.debezium.relational.ValueConverter;
import io.debezium.relational.ValueConverterProvider;
import io.debezium.relational.mapping.ColumnMappers;
import io.debezium.schema.DefaultTopicNamingStrategy;
import io.debezium.schema.FieldNameSelector;
import io.debezium.schema.SchemaNameAdjuster;
import java.sql.Types;
import java.time.Instant;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.errors.DataException;
import org.junit.jupiter.api.Test;

/** Tests that Debezium makes an event of a row without a value that it could not convert. */
class NullableColumnsTest {
    private static final Schema SOURCE = SchemaBuilder.struct().optional().build();
    private static final Object[] UNCONVERTED = {"1", "bad", "bad"};
    private static final Object[] CONVERTED = {"1", "v", "n"};

    /** Stands for Debezium's converters: it fails for one value. */
    private static final class Converters implements ValueConverterProvider {
        @Override
        public SchemaBuilder schemaBuilder(Column column) {
            return SchemaBuilder.string();
        }

        @Override
        public ValueConverter converter(Column column, Field field) {
            return value -> {
                if ("bad".equals(value)) {
                    throw new DataException("cannot convert");
                }
                return value;
            };
        }
    }

    @Test
    void debeziumAloneFailsForAValueThatItCannotConvert() {
        TableSchema schema = schema(builder());
        assertThrows(DataException.class, () -> created(schema, UNCONVERTED));
        assertEquals("v", created(schema, CONVERTED).get("required"));
    }

    @Test
    void aRowMayLackAValue() throws Exception {
        TableSchemaBuilder builder = builder();
        NullableColumns.install(builder);
        TableSchema schema = schema(builder);
        Struct row = created(schema, UNCONVERTED);
        assertNull(row.get("required"));
        assertNull(row.get("nullable"));
        assertEquals("v", created(schema, CONVERTED).get("required"));
        assertEquals("1", schema.keyFromColumnData(UNCONVERTED).get("id"));
        assertTrue(NullableColumns.isRequired(row.schema().field("id").schema()));
        assertTrue(NullableColumns.isRequired(row.schema().field("required").schema()));
        assertFalse(NullableColumns.isRequired(row.schema().field("nullable").schema()));
    }

    @Test
    void debeziumHasTheField() throws Exception {
        Class<?> builder =
                NullableColumns.field(RelationalDatabaseSchema.class, "schemaBuilder").getType();
        assertEquals(TableSchemaBuilder.class, builder);
    }

    private static Struct created(TableSchema schema, Object[] row) {
        return schema.getEnvelopeSchema()
                .create(schema.valueFromColumnData(row), new Struct(SOURCE), Instant.EPOCH)
                .getStruct("after");
    }

    private static TableSchema schema(TableSchemaBuilder builder) {
        Properties settings = new Properties();
        settings.setProperty("topic.prefix", "shop");
        Table table =
                Table.editor()
                        .tableId(new TableId(null, "public", "t"))
                        .addColumns(
                                column("id", false), column("required", false), column("nullable", true))
                        .setPrimaryKeyNames("id")
                        .create();
        return builder.create(
                new DefaultTopicNamingStrategy(settings),
                table,
                null,
                ColumnMappers.build().build(),
                null);
    }

    private static Column column(String name, boolean isOptional) {
        return Column.editor()
                .name(name)
                .type("text")
                .jdbcType(Types.VARCHAR)
                .optional(isOptional)
                .create();
    }

    private static TableSchemaBuilder builder() {
        return new TableSchemaBuilder(
                new Converters(),
                SchemaNameAdjuster.NO_OP,
                new CustomConverterRegistry(List.of()),
                SOURCE,
                SOURCE,
                FieldNameSelector.defaultSelector(SchemaNameAdjuster.NO_OP),
                false,
                EventConvertingFailureHandlingMode.WARN);
    }
}
