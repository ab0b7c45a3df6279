package cdclake.connect;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.debezium.data.SpecialValueDecimal;
import io.debezium.pipeline.signal.actions.SignalActionProvider;
import io.debezium.pipeline.source.snapshot.incremental.ChunkQueryBuilder;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectOutputStream;
import java.math.BigDecimal;
import java.sql.Date;
import java.sql.SQLException;
import java.util.ServiceLoader;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.postgresql.util.PGobject;

/** Tests the bounds of a chunk, which PostgreSQL has to read as values of the key's types. */
class KeyTextChunksTest {
    private static String bound(Object value) {
        return (String) KeyTextChunks.texts(new Object[] {value})[0];
    }

    @Test
    void valuesBecomeTextsOfTheirColumnsType() throws SQLException {
        assertEquals("2020-01-01 00:00:00.000001+00", bound("2020-01-01 00:00:00.000001+00"));
        assertEquals("7", bound(7L));
        assertEquals("100000000000000000000.10", bound(new BigDecimal("1.0000000000000000000010E+20")));
        assertEquals("1.25", bound(new SpecialValueDecimal(new BigDecimal("1.25"))));
        assertEquals("NaN", bound(SpecialValueDecimal.NOT_A_NUMBER));
        assertEquals("Infinity", bound(SpecialValueDecimal.POSITIVE_INF));
        assertEquals("-Infinity", bound(SpecialValueDecimal.NEGATIVE_INF));
        assertEquals("\\x00ff", bound(new byte[] {0, (byte) 0xff}));
        PGobject address = new PGobject();
        address.setValue("10.0.0.1/8");
        assertEquals("10.0.0.1/8", bound(address));
        UUID id = UUID.fromString("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11");
        assertEquals(id.toString(), bound(id));
    }

    @Test
    void datesStayAsTheDriverReadThem() {
        Date infinity = new Date(9223372036825200000L);
        assertSame(infinity, KeyTextChunks.texts(new Object[] {infinity})[0]);
    }

    @Test
    void boundsAreConvertedOnceAndMayBeAbsent() {
        Object[] once = KeyTextChunks.texts(new Object[] {"a", null});
        assertEquals(once[0], KeyTextChunks.texts(once)[0]);
        assertNull(once[1]);
        assertNull(KeyTextChunks.texts((Object[]) null));
    }

    @Test
    void boundsFitIntoTheOffset() throws IOException {
        new ObjectOutputStream(new ByteArrayOutputStream())
                .writeObject(KeyTextChunks.texts(new Object[] {new byte[1], 1, "a"}));
    }

    @Test
    void debeziumFindsTheProviderAndHasTheFields() throws NoSuchFieldException {
        assertTrue(
                ServiceLoader.load(SignalActionProvider.class).stream()
                        .anyMatch(each -> each.type() == KeyTextChunksProvider.class));
        assertNotNull(KeyTextChunksProvider.field("jdbcConnection"));
        assertEquals(
                ChunkQueryBuilder.class, KeyTextChunksProvider.field("chunkQueryBuilder").getType());
    }
}
