-- Beside each event, what PostgreSQL itself says of the row: its own text of every value, and which
-- values it stores out of line. Nothing of this schema is published.
create schema witness;

create table witness.said (
  number bigint generated always as identity primary key,
  source text not null, op text not null, row json, before json, stored_apart json);

-- Two expressions over a row t of the table: its texts, and the TOAST chunks of its values.
-- concat() is each type's output function; a cast to text would cut the blanks off a char(n).
create function witness.expressions(relation oid) returns text language sql
return (
  select format('json_object(array[%1$s], array[%2$s]), json_object(array[%1$s], array[%3$s])',
    string_agg(quote_literal(attname), ', ' order by attnum),
    string_agg(format('case when t.%1$I is not null then concat(t.%1$I) end', attname), ', '
      order by attnum),
    string_agg(format('pg_column_toast_chunk_id(t.%I)::text', attname), ', ' order by attnum))
  from pg_attribute where attrelid = relation and attnum > 0 and not attisdropped);

create procedure witness.read(source text, relation regclass)
  set timezone = 'UTC' set datestyle = 'ISO' set intervalstyle = 'iso_8601'
  set search_path = public, pg_catalog language plpgsql as $$
begin
  execute format('insert into witness.said (source, op, row, stored_apart)
    select %L, ''SNAPSHOT'', %s from %s t', source, witness.expressions(relation), relation);
end $$;

-- Arguments: the declared table, which a partition is not; then the key's columns.
create function witness.note() returns trigger
  set timezone = 'UTC' set datestyle = 'ISO' set intervalstyle = 'iso_8601'
  set search_path = public, pg_catalog language plpgsql as $$
declare
  expressions text := witness.expressions(tg_relid);
  is_it text;
  now json;
  before json;
  stored_apart json;
begin
  if tg_op in ('UPDATE', 'DELETE') then
    execute format('select %s from (select ($1).*) t', expressions)
      into before, stored_apart using old;
  end if;
  if tg_op in ('INSERT', 'UPDATE') then
    select string_agg(format('t.%1$I is not distinct from ($1).%1$I', name), ' and ') into is_it
      from unnest(tg_argv[1:]) name;
    execute format('select %s from %s t where %s', expressions, tg_relid::regclass, is_it)
      into strict now, stored_apart using new;
  end if;
  insert into witness.said (source, op, row, before, stored_apart)
    values (tg_argv[0], tg_op, now, before, case when tg_op <> 'DELETE' then stored_apart end);
  return null;
end $$;
