package cdclake.connect;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.OptionalInt;

/** SHA-256 of salt and text in hex, cut to the column's length: Debezium's hash, version 2. */
record HashMask(byte[] salt) implements Mask {
    @Override
    public String apply(Object value, OptionalInt length) {
        MessageDigest digest = sha256();
        digest.update(salt);
        byte[] text = value.toString().getBytes(StandardCharsets.UTF_8);
        String hash = HexFormat.of().formatHex(digest.digest(text));
        int declared = length.orElse(0);
        return declared > 0 && declared < hash.length() ? hash.substring(0, declared) : hash;
    }

    @Override
    public String toString() {
        return "HashMask"; // without the salt
    }

    private static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException missing) {
            throw new IllegalStateException(missing);
        }
    }
}
