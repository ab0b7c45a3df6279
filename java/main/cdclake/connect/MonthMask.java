package cdclake.connect;

import io.debezium.time.Date;
import java.time.temporal.ChronoField;
import java.time.temporal.Temporal;
import java.util.OptionalInt;
import org.apache.kafka.connect.data.SchemaBuilder;

/** The first day of a date's month; infinities stay what Debezium writes for them. */
record MonthMask() implements Mask {
    /** PostgreSQL's last date is in this year. */
    private static final int LAST_YEAR = 5_874_897;

    @Override
    public Integer apply(Object value, OptionalInt length) {
        return Date.toEpochDay(value, MonthMask::firstDay);
    }

    @Override
    public SchemaBuilder schema() {
        return Date.builder().optional();
    }

    private static Temporal firstDay(Temporal date) {
        boolean isFinite = Math.abs(date.get(ChronoField.YEAR)) <= LAST_YEAR;
        return isFinite ? date.with(ChronoField.DAY_OF_MONTH, 1) : date;
    }
}
