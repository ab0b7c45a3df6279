package cdclake.iceberg;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import org.junit.jupiter.api.Test;

class ElementsTest {
    @Test
    void listsInOrder() {
        assertEquals(List.of(3, 1, 2), Elements.listOf(List.of(3, 1, 2)));
    }

    @Test
    void leavesTheOthers() {
        Iterator<Integer> all = List.of(1, 2, 3).iterator();
        Iterator<Integer> first = Elements.next(all, 2);
        assertEquals(1, first.next());
        assertEquals(2, first.next());
        assertFalse(first.hasNext());
        assertThrows(NoSuchElementException.class, first::next);
        assertEquals(3, all.next());
        assertFalse(Elements.next(all, 2).hasNext());
    }
}
