-- Large values that an UPDATE leaves alone: what stands for each type, under each identity. The low
-- target has every value of more than 24 bytes stored out of line, so that events stay small.
-- `toasted` has the types of which Debezium can say that a value was not sent, `whole` has all.
create extension hstore;
create extension citext;
create extension ltree;
create type mood as enum ('sad', 'happy');

create table samples (id int primary key, v int,
  c_text text, c_varchar varchar(400), c_char char(100), c_citext citext, c_json json,
  c_jsonb jsonb, c_xml xml, c_bytea bytea, c_hstore hstore, c_ltree ltree, c_numeric numeric,
  c_bit bit(400), c_varbit varbit, c_tsvector tsvector, c_numrange numrange,
  c_booleans boolean[], c_smallints smallint[], c_ints int[], c_bigints bigint[], c_oids oid[],
  c_reals real[], c_doubles float8[], c_numerics numeric[], c_dates date[], c_tss timestamp[],
  c_tstzs timestamptz[], c_times time[], c_timetzs timetz[], c_byteas bytea[], c_uuids uuid[],
  c_enums mood[], c_texts text[], c_varchars varchar(9)[], c_chars char(3)[], c_citexts citext[],
  c_jsons json[], c_jsonbs jsonb[], c_inets inet[], c_cidrs cidr[], c_macs macaddr[],
  c_mac8s macaddr8[], c_int4ranges int4range[], c_int8ranges int8range[],
  c_numranges numrange[], c_tsranges tsrange[], c_tstzranges tstzrange[],
  c_dateranges daterange[]);
update pg_attribute set attstorage = 'e' where attrelid = 'samples'::regclass and attlen = -1;
insert into samples values (1, 1,
  repeat('text ', 120), repeat('varchar ', 9), repeat('char ', 9), repeat('Citext ', 9),
  to_json(repeat('json ', 9)), to_jsonb(repeat('jsonb ', 9)),
  ('<a>' || repeat('xml ', 9) || '</a>')::xml, convert_to(repeat('bytea ', 9), 'utf8'),
  hstore('key', repeat('hstore ', 9)), (repeat('ltree.', 9) || 'e')::ltree,
  (repeat('1234567890', 9) || '.5')::numeric, repeat('10', 200)::bit(400),
  repeat('10', 200)::varbit, 'a b c d e f g h i j k l m n o p',
  numrange(1, repeat('7', 90)::numeric),
  array_fill(true, array[9]), array_fill(7::smallint, array[9]), array_fill(7, array[9]),
  array_fill(7::bigint, array[9]), array_fill(7::oid, array[9]), array_fill(1.5::real, array[9]),
  array_fill(1.5::float8, array[9]), array_fill(1.5, array[9]),
  array_fill(date '2024-01-01', array[9]), array_fill(timestamp '2024-01-01', array[9]),
  array_fill(timestamptz '2024-01-01', array[9]), array_fill(time '10:20', array[9]),
  array_fill(timetz '10:20+02', array[9]), array_fill('\x00ff'::bytea, array[9]),
  array_fill('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid, array[9]),
  array_fill('sad'::mood, array[9]), array_fill('text'::text, array[9]),
  array_fill('varchar'::varchar(9), array[9]), array_fill('abc'::char(3), array[9]),
  array_fill('Citext'::citext, array[9]), array_fill('{"a": 1}'::json, array[9]),
  array_fill('{"a": 1}'::jsonb, array[9]), array_fill('10.0.0.1'::inet, array[9]),
  array_fill('10.0.0.0/8'::cidr, array[9]), array_fill('08:00:2b:01:02:03'::macaddr, array[9]),
  array_fill('08:00:2b:01:02:03:04:05'::macaddr8, array[9]),
  array_fill('[1,5)'::int4range, array[9]), array_fill('[1,5)'::int8range, array[9]),
  array_fill('[1,5)'::numrange, array[9]), array_fill('[2024-01-01,)'::tsrange, array[9]),
  array_fill('[2024-01-01,)'::tstzrange, array[9]),
  array_fill('[2024-01-01,2025-01-01)'::daterange, array[9]));

create table whole (like samples including storage, primary key (id));
alter table whole set (toast_tuple_target = 128);
insert into whole select * from samples;
-- The same as `whole`, until its identity is taken from it behind the connector's back.
create table unprotected (like whole including storage, primary key (id));
alter table unprotected set (toast_tuple_target = 128);
insert into unprotected select * from samples;
alter table samples drop c_bit, drop c_varbit, drop c_booleans, drop c_smallints, drop c_oids,
  drop c_reals, drop c_doubles, drop c_numerics, drop c_tss, drop c_tstzs, drop c_times,
  drop c_timetzs, drop c_enums, drop c_citexts, drop c_inets, drop c_cidrs, drop c_macs,
  drop c_mac8s, drop c_int4ranges, drop c_int8ranges, drop c_numranges, drop c_tsranges,
  drop c_tstzranges, drop c_dateranges;
create table toasted (like samples including storage, primary key (id));
alter table toasted set (toast_tuple_target = 128);
insert into toasted select * from samples;
insert into toasted (id, c_text) values (2, 'short');
-- Domains over these: Debezium chooses its mark by the type's name, which it knows of no domain.
create domain hstore_domain as hstore; create domain ints_domain as int[];
create domain bigints_domain as bigint[]; create domain dates_domain as date[];
create domain byteas_domain as bytea[]; create domain uuids_domain as uuid[];
create domain texts_domain as text[]; create domain varchars_domain as varchar(9)[];
create domain chars_domain as char(3)[]; create domain jsons_domain as json[];
create domain jsonbs_domain as jsonb[];
create domain word as text;
create domain labels as texts_domain;
create table domains (id int primary key, v int, c_word word, c_labels labels not null,
  c_hstore hstore_domain, c_ints ints_domain, c_bigints bigints_domain, c_dates dates_domain,
  c_byteas byteas_domain, c_uuids uuids_domain, c_texts texts_domain, c_varchars varchars_domain,
  c_chars chars_domain, c_jsons jsons_domain, c_jsonbs jsonbs_domain)
  with (toast_tuple_target = 128);
update pg_attribute set attstorage = 'e' where attrelid = 'domains'::regclass and attlen = -1;
insert into domains select id, v, repeat('word ', 500), c_texts, c_hstore, c_ints, c_bigints,
  c_dates, c_byteas, c_uuids, c_texts, c_varchars, c_chars, c_jsons, c_jsonbs from samples;
-- A key that is stored out of line itself.
create table long_key (k text storage external primary key, v int, big text storage external)
  with (toast_tuple_target = 128);
insert into long_key values (repeat('key ', 25), 1, repeat('b', 3000));
-- Masks of large values, and of every type that may be masked. Twenty emojis are 80 bytes.
create table masked (id int primary key, v int, c_hash text, c_hash20 varchar(20),
  c_char char(100) not null, c_citext citext, c_cut text, c_citext_cut citext)
  with (toast_tuple_target = 128);
update pg_attribute set attstorage = 'e' where attrelid = 'masked'::regclass and attlen = -1;
insert into masked values (1, 1, repeat('text ', 600), repeat('😀', 20), repeat('char ', 9),
  repeat('Citext ', 9), repeat('Cut ', 30), repeat('Citext cut ', 9));

--! stream

update toasted set v = 2 where id = 1;
update toasted set v = null, c_text = repeat('other ', 400) where id = 1;
update toasted set c_jsonb = null, c_bytea = '\x00', c_dates = '{}', c_texts = null where id = 1;
update toasted set id = 10 where id = 1;
update toasted set id = 11, c_text = repeat('third ', 400) where id = 10;
update toasted set v = 3 where id = 2;
update samples set id = 3;
insert into toasted select * from samples;
begin;
update toasted set v = 4 where id = 3;
update toasted set c_text = repeat('fourth ', 400) where id = 3;
update toasted set v = 5 where id = 3;
commit;
update toasted set v = v where id = 3;
delete from toasted where id = 3;

update whole set v = 2 where id = 1;
update whole set v = null, c_text = repeat('other ', 400), c_tss = null where id = 1;
update whole set id = 10 where id = 1;
delete from whole where id = 10;

update unprotected set v = 2 where id = 1;
alter table unprotected replica identity default;
update unprotected set v = 3 where id = 1;

update domains set v = 2;
update domains set v = null, c_word = 'short', c_texts = '{}', c_labels = '{new}';
update domains set id = 10;

update long_key set v = 2;
update long_key set k = repeat('new ', 25);
update long_key set v = null, k = repeat('key ', 25);
delete from long_key;

update masked set v = 2 where id = 1;
update masked set v = null, c_hash = repeat('other ', 600), c_cut = null where id = 1;
update masked set id = 10 where id = 1;
update masked set v = 3, c_hash = null, c_cut = repeat('Third ', 600) where id = 10;
insert into masked values (2, 1, '', '', '', '', '', ''), (3, 1, 'Zoë', 'Zoë', 'Zoë', 'Zoë', 'Zoë', 'Zoë');
update masked set v = 2;
delete from masked where id = 10;
