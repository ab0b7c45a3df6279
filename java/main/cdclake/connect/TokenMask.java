package cdclake.connect;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.util.HexFormat;
import java.util.OptionalInt;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * HMAC-SHA-256 of a text in hex, whatever the column's length.
 *
 * <p>So equal values of columns with different types and lengths have equal tokens, which join.
 */
record TokenMask(byte[] key) implements Mask {
    private static final String ALGORITHM = "HmacSHA256";

    @Override
    public String apply(Object value, OptionalInt length) {
        byte[] text = value.toString().getBytes(StandardCharsets.UTF_8);
        try {
            Mac mac = Mac.getInstance(ALGORITHM);
            mac.init(new SecretKeySpec(key, ALGORITHM));
            return HexFormat.of().formatHex(mac.doFinal(text));
        } catch (GeneralSecurityException missing) {
            throw new IllegalStateException(missing);
        }
    }

    @Override
    public String toString() {
        return "TokenMask"; // without the key
    }
}
