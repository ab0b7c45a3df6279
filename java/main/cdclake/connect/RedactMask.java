package cdclake.connect;

import java.util.OptionalInt;

/** The same text instead of every value. */
record RedactMask() implements Mask {
    static final String REDACTED = "***";

    @Override
    public String apply(Object value, OptionalInt length) {
        return REDACTED;
    }
}
