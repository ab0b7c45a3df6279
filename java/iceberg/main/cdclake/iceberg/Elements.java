package cdclake.iceberg;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;

/**
 * Collections for callers from Python, who would pay for a call per element.
 *
 * <p>Iceberg brings classes for this too, but under a name that each build of it may relocate.
 */
public final class Elements {
    private Elements() {}

    /** Return the elements in a list, in order. */
    public static <T> List<T> listOf(Iterable<T> elements) {
        List<T> list = new ArrayList<>();
        elements.forEach(list::add);
        return list;
    }

    /** Return an iterator over the next elements, at most this many; the others stay in the given one. */
    public static <T> Iterator<T> next(Iterator<T> elements, long count) {
        return new Iterator<>() {
            private long left = count;

            @Override
            public boolean hasNext() {
                return left > 0 && elements.hasNext();
            }

            @Override
            public T next() {
                if (!hasNext()) {
                    throw new NoSuchElementException();
                }
                left--;
                return elements.next();
            }
        };
    }
}
