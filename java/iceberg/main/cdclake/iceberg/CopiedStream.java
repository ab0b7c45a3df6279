package cdclake.iceberg;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import org.apache.iceberg.io.PositionOutputStream;

/** Copies what is written, up to a limit; the copy is kept once the file is closed without an error. */
final class CopiedStream extends PositionOutputStream {
    private final PositionOutputStream stream;
    private final String path;
    private final WrittenFiles written;
    private ByteArrayOutputStream copy = new ByteArrayOutputStream();

    CopiedStream(PositionOutputStream stream, String path, WrittenFiles written) {
        this.stream = stream;
        this.path = path;
        this.written = written;
    }

    @Override
    public void write(int value) throws IOException {
        stream.write(value);
        if (hasRoom(1)) {
            copy.write(value);
        }
    }

    @Override
    public void write(byte[] bytes, int offset, int length) throws IOException {
        stream.write(bytes, offset, length);
        if (hasRoom(length)) {
            copy.write(bytes, offset, length);
        }
    }

    @Override
    public long getPos() throws IOException {
        return stream.getPos();
    }

    @Override
    public long storedLength() throws IOException {
        return stream.storedLength();
    }

    @Override
    public void flush() throws IOException {
        stream.flush();
    }

    @Override
    public void close() throws IOException {
        stream.close();
        if (copy != null) {
            written.put(path, copy.toByteArray());
            copy = null;
        }
    }

    private boolean hasRoom(int length) {
        if (copy != null && copy.size() + length > WrittenFiles.MAX_FILE_BYTES) {
            copy = null;
        }
        return copy != null;
    }
}
