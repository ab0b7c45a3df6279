package cdclake.connect;

import java.util.ArrayList;
import java.util.List;

/** PostgreSQL's text of an array: `{a,"b \"c\"",NULL}`, with its bounds before it if not from 1. */
final class ArrayText {
    private final String text;
    private int at;

    private ArrayText(String text, int start) {
        this.text = text;
        this.at = start;
    }

    /** Return the elements of an array's first dimension; those of further ones are texts of arrays. */
    static List<String> elements(String text) {
        return new ArrayText(text, text.indexOf('{') + 1).elements();
    }

    private List<String> elements() {
        List<String> found = new ArrayList<>();
        while (text.charAt(at) != '}') {
            found.add(
                    switch (text.charAt(at)) {
                        case '"' -> quoted();
                        case '{' -> nested();
                        default -> plain();
                    });
            if (text.charAt(at) == ',') {
                at++;
            }
        }
        return found;
    }

    private String plain() {
        int start = at;
        while (text.charAt(at) != ',' && text.charAt(at) != '}') {
            at++;
        }
        String element = text.substring(start, at);
        return element.equals("NULL") ? null : element;
    }

    private String quoted() {
        StringBuilder element = new StringBuilder();
        for (at++; text.charAt(at) != '"'; at++) {
            if (text.charAt(at) == '\\') {
                at++;
            }
            element.append(text.charAt(at));
        }
        at++;
        return element.toString();
    }

    private String nested() {
        int start = at;
        for (int depth = 0; ; at++) {
            char c = text.charAt(at);
            if (c == '"') {
                quoted();
                at--;
            } else if (c == '{') {
                depth++;
            } else if (c == '}' && --depth == 0) {
                at++;
                return text.substring(start, at);
            }
        }
    }
}
