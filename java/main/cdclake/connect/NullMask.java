package cdclake.connect;

import java.util.OptionalInt;

/** NULL instead of every value, also of one that was not sent. */
record NullMask() implements Mask {
    @Override
    public Object apply(Object value, OptionalInt length) {
        return null;
    }

    @Override
    public Object unsent(String placeholder) {
        return null;
    }
}
