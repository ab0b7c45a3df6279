-- Every type with its edge values. Rows below 100 come by the snapshot, the others by the stream.
create extension hstore;
create extension citext;
create extension ltree;
create type mood as enum ('sad', 'it''s "ok"');
create domain quantity as int check (value > 0);
create domain price as numeric(8,2);
create domain short_text as varchar(40);

create table typed (id bigint primary key,
  c_bool boolean, c_int2 smallint, c_oid oid, c_real real, c_double double precision,
  c_num numeric, c_num122 numeric(12,2), c_num33 numeric(3,3), c_num503 numeric(50,3),
  c_money money, c_date date, c_ts timestamp, c_ts3 timestamp(3), c_tstz timestamptz, c_time time,
  c_timetz timetz, c_interval interval, c_bytea bytea, c_uuid uuid, c_text text, c_char char(5),
  c_json json, c_jsonb jsonb, c_xml xml, c_inet inet, c_bit1 bit(1), c_bit10 bit(10),
  c_varbit varbit(40), c_enum mood, c_point point, c_range tstzrange, c_tsv tsvector,
  c_texts text[], c_ints int[], c_nums numeric[], c_floats float8[], c_reals real[],
  c_dates date[], c_tss timestamp[], c_tstzs timestamptz[], c_byteas bytea[], c_uuids uuid[],
  c_bools boolean[], c_hash text, c_hash20 varchar(20), c_cut text, c_times time[],
  c_jsons jsonb[], c_timetzs timetz[],
  c_int int, c_num380 numeric(38,0), c_num3838 numeric(38,38), c_varchar varchar(20),
  c_citext citext, c_hstore hstore, c_ltree ltree, c_cidr cidr, c_mac macaddr, c_mac8 macaddr8,
  c_int4range int4range, c_int8range int8range, c_numrange numrange, c_tsrange tsrange,
  c_daterange daterange, c_quantity quantity, c_price price, c_short short_text,
  c_int2s smallint[], c_longs bigint[], c_oids oid[], c_varchars varchar(20)[], c_chars char(3)[],
  c_enums mood[], c_citexts citext[], c_inets inet[], c_cidrs cidr[], c_macs macaddr[],
  c_mac8s macaddr8[], c_rawjsons json[], c_int4ranges int4range[], c_int8ranges int8range[],
  c_numranges numrange[], c_tsranges tsrange[], c_tstzranges tstzrange[], c_dateranges daterange[],
  c_gen int generated always as (c_int2 + 1) stored);
-- Arrays of money and of intervals never come; they have to be excluded.
create table keyed (d date, t timestamptz, u text, n numeric, spans interval[], prices money[],
  primary key (d, t, u));
create table refused (id int primary key, d date, t timestamp, z timestamptz, n numeric(6,2),
  m numeric);
-- Values that Debezium changes, or that no column of a lake holds.
create table limits (id int primary key, d date, ds date[], t timestamp, ts timestamp[],
  z timestamptz, zs timestamptz[], ns numeric[], i interval, ticks time[], grid int[], words text[],
  moods mood[]);

-- The rows, once; they are put into `typed` with other ids.
create table samples (like typed);
alter table samples drop column c_gen;
insert into samples values (1,
  true, -5, 4294967295, 0.1, 1e-7,
  1.500, 12.30, 0.123, 12345678901234567890123456789012345678901234567.125,
  '-1234.56', '2024-02-29', '2024-01-02 03:04:05.5', '2024-01-02 03:04:05.123',
  '2024-01-02 03:04:05.123456+05', '10:20:30.5', '10:20:30.5+05:30',
  '1 year 2 mons -3 days 04:05:06.78', '\x00ff10', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11',
  E'tab\t "q" | é 😀 \\', 'ab', '{"a": 1.0,  "a":2}', '{"b":1.10,"a":[1,null]}', '<a>x</a>',
  '10.0.0.1/8', '1', '0000000101', '0011', 'it''s "ok"', '(1.5,-2)', '[2024-01-01 00:00:00+02,)',
  'a fat cat', array['a"b', null, E'\n\x01', 'é😀'], array[1, null, -3], array[1.50, null, 1e-10],
  array[1, 0.1, 'NaN', '-Infinity', 1e300, null], array[0.1, 1e10, null]::real[],
  array['2024-01-01', null]::date[], array['2024-01-01 01:02:03.4', null]::timestamp[],
  array['2024-01-01 01:02:03.4+02', null]::timestamptz[], array['\x00ff', null, '\x']::bytea[],
  array['A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', null]::uuid[], array[true, null, false], 'secret é',
  'secret', 'abcdefg', array['10:20:30.5', null]::time[], array['{"a":1}', null]::jsonb[],
  array['10:20:30+02', null]::timetz[],
  2147483647, 99999999999999999999999999999999999999, -0.00000000000000000000000000000000000001,
  'varying é', 'CiText', '"a"=>"1", "b\"c"=>NULL, "é"=>""', 'Top.Science.Astronomy',
  '10.1.0.0/16', '08:00:2b:01:02:03', '08:00:2b:01:02:03:04:05', '[1,5)', '(,9223372036854775807)',
  '[1.10,2.5)', '[2024-01-01 00:00:00,2024-01-02 00:00:00.5)', '[2024-01-01,2024-12-31]',
  7, 123456.78, 'short', array[1, null, -32768], array[9007199254740993, null],
  array[4294967295, null], array['a,b', null, '{}'], array['a', null, 'abc'],
  array['sad', 'it''s "ok"']::mood[], array['Ab', null]::citext[],
  array['10.0.0.1', null, '::1/64']::inet[], array['10.0.0.0/8', null]::cidr[],
  array['08:00:2b:01:02:03', null]::macaddr[], array['08:00:2b:01:02:03:04:05', null]::macaddr8[],
  array['{"n": 12345678901234567890}', null]::json[], array['[1,5)', null, 'empty']::int4range[],
  array['[1,5)', null]::int8range[], array['[1.10,2.5)', null]::numrange[],
  array['[2024-01-01 00:00:00,)', null]::tsrange[],
  array['[2024-01-01 00:00:00+02,)', null]::tstzrange[],
  array['[2024-01-01,2024-01-02)', null]::daterange[]);
insert into samples (id) values (2);
insert into samples values (3,
  false, 32767, 0, 'NaN', 'Infinity',
  'NaN', -0.01, -0.999, 0,
  '0', '0044-03-15 BC', '0044-03-15 00:00:00 BC', '1969-12-31 23:59:59.999',
  '12345-01-01 00:00:00+00', '24:00:00', '24:00:00+00',
  '-00:00:00.000001', '', '00000000-0000-0000-0000-000000000000',
  '', '', 'null', 'null', '', '::1', '0', '1111111111', '', 'sad', '(NaN,0)', 'empty', '', '{}',
  '{}', array['NaN']::numeric[], '{}', '{}', '{}', '{}',
  array['0044-03-15 00:00:00+00 BC']::timestamptz[], '{}', '{}', '{}', '', '', 'é😀xy',
  array['24:00:00']::time[], '{}', '{}',
  -2147483648, 0, 0, '', '', '', '', '0.0.0.0/0', '00:00:00:00:00:00', 'ff:ff:ff:ff:ff:ff:ff:ff',
  'empty', 'empty', 'empty', 'empty', 'empty', 1, 0, '', '{}', '{}', '{}', '{}', '{}', '{}', '{}',
  '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}');
insert into samples (id, c_real, c_double, c_num, c_interval, c_time, c_texts, c_varbit, c_cut,
    c_range, c_date, c_ts, c_json, c_jsonb, c_bytea, c_money, c_timetz, c_dates, c_tss, c_daterange)
  values (4, '-0', '-0', 100, '100:00:00', '00:00:00', array['']::text[],
    '1000000000000000000000000000000000000001', 'ab😀d', '(,)', '9999-12-31',
    '9999-12-31 23:59:59.999999',
    '{"n": 12345678901234567890.123456789, "n": 1e400, "s": "\u00e9"}',
    '{"n": 12345678901234567890.123456789, "m": 1e400}', '\x7f80ff', '-92233720368547758.08',
    '23:59:59.999999-15:59', array['12345-01-01', '9999-12-31']::date[],
    array['12345-01-01 00:00:00.000001']::timestamp[], '(,2024-01-01)');
insert into samples (id, c_real, c_double, c_num, c_interval, c_date, c_ts, c_tstz, c_text,
    c_num503, c_int8range, c_timetzs, c_money)
  values (5, '-Infinity', 5e-324, 'Infinity', '-178000000 years', '12345-01-01',
    '12345-01-01 00:00:00.000001', '0044-03-15 00:00:00.5 BC', E'\u2028\r\n\x7f',
    -99999999999999999999999999999999999999999999999.999, '[-9223372036854775808,0)',
    array['24:00:00+00', '00:00:00-12']::timetz[], '92233720368547758.07');
insert into samples (id, c_real, c_double, c_num, c_interval, c_tstz, c_ts)
  values (6, 3.4028235e38, 1.7976931348623157e308, '-Infinity', '1.5 days -0.5 seconds',
    '1900-01-01 00:00:00.000001+00', '0001-01-01 00:00:00 BC');
insert into samples (id, c_real, c_double, c_num)
  values (7, 1e-45, 0.1::float8 + 0.2::float8, 1e-30 + 1e30);

insert into typed select * from samples;
insert into keyed values ('2024-01-01', '2024-01-01 10:00:00.123+02', 'a|b', 1.50,
    array['1 day 00:00:01.5']::interval[], array['1.25']::money[]);
insert into keyed values ('0044-03-15 BC', '0044-03-15 00:00:00+00 BC', '|,', 0.0);
insert into refused values (1, '2024-01-01', '2024-01-01', '2024-01-01', 1.5, 1),
  (2, 'infinity', null, null, null, null), (3, null, '-infinity', null, null, null),
  (4, null, null, 'infinity', null, null), (5, null, null, null, 'NaN', null),
  (6, null, null, null, null, 'NaN');
insert into limits values (1, '0044-03-15 BC', '{0044-03-15 BC,1500-03-01}', '0044-03-15 BC',
    '{0044-03-15 BC,1500-03-01}', '0044-03-15 BC', '{0044-03-15 BC,1500-03-01}', '{1.5,NaN}',
    'infinity', '{24:00:00}', '{{1,2},{3,4}}', '{{a,b},{c,d}}', '{sad,NULL}'),
  (2, '1500-03-01', '{infinity,-infinity}', '1500-03-01', '{infinity,-infinity}', '1500-03-01',
    '{infinity,-infinity}', '{Infinity}', '-infinity', '{10:20:30}', '[5:6]={7,8}', null, '{NULL}'),
  (3, '1582-10-10', '{1582-10-10}', '1582-10-10', '{1582-10-10}', '1582-10-10', '{1582-10-10}',
    null, null, null, null, null, null),
  (4, null, null, '294276-12-31 23:59:59.999999', null, '294276-12-31 23:59:59.999999+00',
    null, null, null, null, null, null, null);

--! stream

update samples set id = id + 100;
insert into typed select * from samples;
insert into keyed values ('2024-04-10', '2024-01-01 10:01:40.123+02', 'a|b', 1.50),
  ('0044-03-15 BC', '0044-03-15 00:01:40+00 BC', '|,', 0.0);
insert into refused values (101, '-infinity', null, null, null, null),
  (102, null, 'infinity', null, null, null), (103, null, null, '-infinity', null, null),
  (104, null, null, null, 'NaN', null), (105, null, null, null, null, 'Infinity'),
  (106, '2024-01-01', '2024-01-01', '2024-01-01', -9999.99, '-Infinity');
create table kept_limits as select * from limits;
update kept_limits set id = id + 100;
insert into limits select * from kept_limits;
