package cdclake.connect;

import java.util.OptionalInt;

/** Mask of a column's texts. */
interface Mask {
    /**
     * Return the masked text.
     *
     * @param length the column's declared length in characters, if it has one
     */
    String apply(String text, OptionalInt length);
}
