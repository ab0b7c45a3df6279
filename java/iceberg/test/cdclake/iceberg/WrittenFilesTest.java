package cdclake.iceberg;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import org.apache.iceberg.io.PositionOutputStream;
import org.junit.jupiter.api.Test;

class WrittenFilesTest {
    private static final int MIB = 1 << 20;
    private final WrittenFiles written = new WrittenFiles();

    @Test
    void theFilesUsedLongestAgoAreDropped() {
        for (int number = 0; number < 64; number++) {
            written.put("file " + number, new byte[MIB]);
        }
        written.get("file 0");
        written.put("one more", new byte[MIB]);
        assertNull(written.get("file 1"));
        assertFalse(written.get("file 0") == null || written.get("one more") == null);
    }

    @Test
    void aFileIsKeptWhenItIsClosed() throws IOException {
        PositionOutputStream stream = new CopiedStream(new Stored(false), "path", written);
        stream.write('a');
        stream.write(new byte[] {'b', 'c', 'd'}, 1, 2);
        assertNull(written.get("path"));
        stream.close();
        assertArrayEquals(new byte[] {'a', 'c', 'd'}, written.get("path"));
    }

    @Test
    void aFileThatIsNotStoredIsNotKept() throws IOException {
        PositionOutputStream stream = new CopiedStream(new Stored(true), "path", written);
        stream.write('a');
        assertThrows(IOException.class, stream::close);
        assertNull(written.get("path"));
    }

    @Test
    void aLargeFileIsNotKept() throws IOException {
        PositionOutputStream stream = new CopiedStream(new Stored(false), "path", written);
        stream.write(new byte[WrittenFiles.MAX_FILE_BYTES]);
        stream.write('a');
        stream.close();
        assertNull(written.get("path"));
    }

    private static final class Stored extends PositionOutputStream {
        private final ByteArrayOutputStream content = new ByteArrayOutputStream();
        private final boolean fails;

        Stored(boolean fails) {
            this.fails = fails;
        }

        @Override
        public void write(int value) {
            content.write(value);
        }

        @Override
        public long getPos() {
            return content.size();
        }

        @Override
        public void close() throws IOException {
            if (fails) {
                throw new IOException("a test");
            }
        }
    }
}
