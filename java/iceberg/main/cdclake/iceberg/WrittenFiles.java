package cdclake.iceberg;

import java.util.LinkedHashMap;
import java.util.Map;

/** Contents of small files by path; beyond the limit those used longest ago are dropped. */
final class WrittenFiles {
    static final int MAX_FILE_BYTES = 4 << 20;
    private static final long MAX_BYTES = 64L << 20;

    private final Map<String, byte[]> contents = new LinkedHashMap<>(16, 0.75f, true);
    private long size;

    synchronized byte[] get(String path) {
        return contents.get(path);
    }

    synchronized void put(String path, byte[] content) {
        remove(path);
        contents.put(path, content);
        size += content.length;
        var oldest = contents.values().iterator();
        while (size > MAX_BYTES) {
            size -= oldest.next().length;
            oldest.remove();
        }
    }

    synchronized void remove(String path) {
        byte[] content = contents.remove(path);
        size -= content == null ? 0 : content.length;
    }
}
