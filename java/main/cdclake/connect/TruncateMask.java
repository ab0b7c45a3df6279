package cdclake.connect;

import java.util.OptionalInt;

/** The first UTF-16 units of a text, as Debezium cuts it; a shorter column stays whole. */
record TruncateMask(int kept) implements Mask {
    @Override
    public String apply(Object value, OptionalInt length) {
        String text = value.toString();
        boolean fits = length.isPresent() && length.getAsInt() <= kept;
        return fits || text.length() <= kept ? text : text.substring(0, kept);
    }
}
