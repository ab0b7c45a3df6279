package cdclake.connect;

import java.nio.ByteBuffer;
import java.util.Map;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Struct;

/**
 * Upper bounds of the bytes that Connect's JSON converter and an Avro converter write for a value,
 * without writing them.
 *
 * <p>Only short floating-point numbers are longer in Avro. Both formats get the same bound: a change
 * of the format changes no row's way, and an event that the registry refuses is JSON.
 *
 * <p>The values may be larger than what is free of the worker's memory, so nothing is copied.
 */
final class RecordSize {
    /** Bytes of an escaped control character, the longest form of a character. */
    private static final int LONGEST_CHARACTER = 6;

    /** Bytes of the longest number or truth value in quotes, and of a comma. */
    private static final int SCALAR = 32;

    /** Bytes of two quotes, a colon or a bracket pair, and a comma. */
    private static final int PUNCTUATION = 4;

    private static final int COMMA = 1;

    /** Bytes that tell in Avro whether an optional value is null. */
    private static final int UNION = 1;

    private RecordSize() {}

    /** Returns a bound from the lengths of texts and the number of values alone. */
    static long bound(Object value) {
        return of(value, false);
    }

    /** Returns the size of the longer form, and at most a few bytes more per struct, list and map. */
    static long measured(Object value) {
        return of(value, true);
    }

    private static long of(Object value, boolean isExact) {
        if (value instanceof String text) {
            return textBytes(text, isExact) + PUNCTUATION;
        }
        if (value instanceof Struct struct) {
            long sum = PUNCTUATION;
            for (Field field : struct.schema().fields()) {
                sum += textBytes(field.name(), isExact) + PUNCTUATION;
                sum += of(struct.get(field), isExact);
            }
            return sum;
        }
        if (value instanceof Iterable<?> list) {
            long sum = PUNCTUATION;
            for (Object element : list) {
                sum += of(element, isExact);
            }
            return sum;
        }
        if (value instanceof Map<?, ?> map) {
            long sum = PUNCTUATION;
            for (Map.Entry<?, ?> entry : map.entrySet()) {
                // A pair of brackets for keys that are not strings, which become a list of pairs.
                sum += PUNCTUATION + of(entry.getKey(), isExact);
                sum += of(entry.getValue(), isExact);
            }
            return sum;
        }
        return ofScalar(value, isExact);
    }

    private static long ofScalar(Object value, boolean isExact) {
        if (value instanceof byte[] bytes) {
            return base64(bytes.length) + PUNCTUATION;
        }
        if (value instanceof ByteBuffer bytes) {
            return base64(bytes.remaining()) + PUNCTUATION;
        }
        if (value == null || value instanceof Boolean || isPrimitiveNumber(value)) {
            return isExact ? Math.max(jsonBytes(value), avroBytes(value)) : SCALAR;
        }
        return textBytes(value.toString(), isExact) + SCALAR;
    }

    private static int jsonBytes(Object value) {
        return String.valueOf(value).length() + quotes(value) + COMMA;
    }

    /** Returns the bytes in Avro of a floating-point number; all others are longer in JSON. */
    private static int avroBytes(Object value) {
        int bytes = value instanceof Double ? Double.BYTES : value instanceof Float ? Float.BYTES : 0;
        return UNION + bytes;
    }

    /** Returns the bytes of the quotes around the words for numbers that JSON does not have. */
    private static int quotes(Object value) {
        boolean isWord =
                value instanceof Double number && !Double.isFinite(number)
                        || value instanceof Float half && !Float.isFinite(half);
        return isWord ? 2 : 0;
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
    private static long textBytes(String text, boolean isExact) {
        if (!isExact) {
            return (long) LONGEST_CHARACTER * text.length();
        }
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
