package cdclake.connect;

import java.nio.ByteBuffer;
import java.util.Map;
import java.util.function.ToLongFunction;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Struct;

/**
 * Upper bounds of the bytes that Connect's JSON converter writes for a value, without writing them.
 *
 * <p>The values may be larger than what is free of the worker's memory, so nothing is copied.
 */
final class JsonSize {
    /** Bytes of an escaped control character, the longest form of a character. */
    private static final int LONGEST_CHARACTER = 6;

    /** Bytes of the longest number or truth value, and of a comma. */
    private static final int SCALAR = 32;

    /** Bytes of two quotes, a colon or a bracket pair, and a comma. */
    private static final int PUNCTUATION = 4;

    private JsonSize() {}

    /** Returns a bound from the lengths of texts alone: at most six times as much as measured. */
    static long bound(Object value) {
        return of(value, text -> (long) LONGEST_CHARACTER * text.length());
    }

    /** Returns the exact size of texts and bytes, and a bound of a few bytes for all else. */
    static long measured(Object value) {
        return of(value, JsonSize::textBytes);
    }

    private static long of(Object value, ToLongFunction<String> bytesOfText) {
        if (value instanceof String text) {
            return bytesOfText.applyAsLong(text) + PUNCTUATION;
        }
        if (value instanceof Struct struct) {
            long sum = PUNCTUATION;
            for (Field field : struct.schema().fields()) {
                sum += bytesOfText.applyAsLong(field.name()) + PUNCTUATION;
                sum += of(struct.get(field), bytesOfText);
            }
            return sum;
        }
        if (value instanceof Iterable<?> list) {
            long sum = PUNCTUATION;
            for (Object element : list) {
                sum += of(element, bytesOfText);
            }
            return sum;
        }
        if (value instanceof Map<?, ?> map) {
            long sum = PUNCTUATION;
            for (Map.Entry<?, ?> entry : map.entrySet()) {
                // A pair of brackets for keys that are not strings, which become a list of pairs.
                sum += PUNCTUATION + of(entry.getKey(), bytesOfText);
                sum += of(entry.getValue(), bytesOfText);
            }
            return sum;
        }
        return ofScalar(value, bytesOfText);
    }

    private static long ofScalar(Object value, ToLongFunction<String> bytesOfText) {
        if (value instanceof byte[] bytes) {
            return base64(bytes.length) + PUNCTUATION;
        }
        if (value instanceof ByteBuffer bytes) {
            return base64(bytes.remaining()) + PUNCTUATION;
        }
        if (value == null || value instanceof Boolean || isPrimitiveNumber(value)) {
            return SCALAR;
        }
        return bytesOfText.applyAsLong(value.toString()) + SCALAR;
    }

    private static boolean isPrimitiveNumber(Object value) {
        return value instanceof Byte
                || value instanceof Short
                || value instanceof Integer
                || value instanceof Long
                || value instanceof Float
                || value instanceof Double;
    }

    private static long base64(long bytes) {
        return (bytes + 2) / 3 * 4;
    }

    /** Returns the bytes of a text in UTF-8, escaped as Jackson does it, without its quotes. */
    private static long textBytes(String text) {
        long bytes = 0;
        for (int i = 0; i < text.length(); i++) {
            bytes += characterBytes(text.charAt(i));
        }
        return bytes;
    }

    private static int characterBytes(char c) {
        if (c < 0x20) {
            return "\b\t\n\f\r".indexOf(c) >= 0 ? 2 : LONGEST_CHARACTER;
        }
        if (c < 0x80) {
            return c == '"' || c == '\\' ? 2 : 1;
        }
        // Jackson escapes both halves of a character beyond 16 bits.
        return c < 0x800 ? 2 : Character.isSurrogate(c) ? LONGEST_CHARACTER : 3;
    }
}
