package cdclake.connect;

import java.util.OptionalInt;

/**
 * The first UTF-16 units of a text, as Debezium cuts it; a shorter column stays whole.
 *
 * <p>Unlike Debezium it keeps no half of a character, which no UTF-8 of an event could hold.
 */
record TruncateMask(int kept) implements Mask {
    @Override
    public String apply(Object value, OptionalInt length) {
        String text = value.toString();
        boolean fits = length.isPresent() && length.getAsInt() <= kept;
        return fits || text.length() <= kept ? text : text.substring(0, wholeCharacters(text));
    }

    private int wholeCharacters(String text) {
        boolean isHalved = kept > 0 && Character.isHighSurrogate(text.charAt(kept - 1));
        return isHalved ? kept - 1 : kept;
    }
}
