-- Rows that change: keys, identities, truncates, partitions, transactions.
create table plain (id int primary key, v int default 42, note text not null default 'none',
  amount numeric(12,2) not null default 5, at timestamptz not null default '2024-01-01');
create table whole (id int, v int default 42, big text, at date not null default '2024-01-01');
alter table whole alter big set storage external;
create table by_index (id int primary key, code text not null, v int default 42, big text);
create unique index by_index_code on by_index (code);
alter table by_index alter big set storage external;
create table pair (a int, b text, v int, big text, primary key (b, a));
alter table pair alter big set storage external;
create table parent (id int primary key, v text);
create table child (id int primary key, parent_id int references parent on delete cascade);
create table "Parts" (id int, "Region" text, v int default 42, big text,
  primary key (id, "Region")) partition by list ("Region");
create table parts_north partition of "Parts" for values in ('north');
create table parts_south partition of "Parts" for values in ('south');
insert into plain values (1, 1, 'first', 1.5), (2, null, 'second', 2.5);
insert into whole values (1, 1, repeat('w', 3000)), (2, null, null);
insert into by_index values (1, 'one', 1, repeat('i', 3000)), (2, 'two', null, null);
insert into pair values (1, 'one', 1, repeat('p', 3000)), (2, 'two', null, null);
insert into "Parts" values (1, 'north', 1, repeat('n', 3000)), (2, 'south', null, null);

--! stream

-- NULL where the column has a default, in new rows and in old ones.
insert into plain (id, v) values (3, null);
insert into plain (id) values (4);
update plain set v = null where id = 1;
update plain set v = v where id = 4;
update plain set note = '' where id = 4;
delete from plain where id = 2;
insert into plain values (2, null, 'again');
-- The key alone, the key and a value, there and back, onto a key that was deleted before.
update plain set id = 30 where id = 3;
update plain set id = 40, note = 'moved' where id = 4;
update plain set id = 3 where id = 30;
delete from plain where id = 40;
update plain set id = 40 where id = 3;

insert into whole values (3, null, repeat('v', 3000), '2024-02-02');
update whole set v = 2 where id = 1;
update whole set v = null where id = 1;
update whole set id = 10 where id = 1;
delete from whole where id = 3;
delete from whole where id = 2;

update by_index set v = 2 where id = 1;
update by_index set id = 10 where id = 1;
update by_index set code = 'uno' where id = 10;
delete from by_index where code = 'uno';
delete from by_index where code = 'two';

-- Of a composite key one part, the other, both; with and without an unchanged large value.
update pair set v = 2 where a = 1;
update pair set a = 10 where a = 1;
update pair set b = 'uno' where a = 10;
update pair set a = 1, b = 'one', v = 3 where a = 10;
update pair set a = 20, big = 'new' where a = 2;
update pair set a = 11, big = null where a = 1;
delete from pair where a = 11;

-- Rows that move between partitions, with their key and with an unchanged large value.
update "Parts" set v = 2 where id = 1;
update "Parts" set "Region" = 'south' where id = 1;
update "Parts" set v = 3, "Region" = 'north' where id = 1;
create table parts_west partition of "Parts" for values in ('west');
insert into "Parts" values (3, 'west', null, null);
update "Parts" set "Region" = 'west' where id = 2;
update "Parts" set id = 30 where id = 3;
delete from "Parts" where id = 30;
-- A truncate of a partition alone is not in the stream: PostgreSQL leaves it out.
truncate parts_north;
truncate "Parts";
insert into "Parts" values (1, 'north', 4, 'after');

insert into parent values (1, 'a'), (2, 'b'), (3, 'c');
insert into child values (10, 1), (20, 2), (21, 2);
delete from parent where id = 2;
truncate parent cascade;
insert into parent values (1, 'again');
insert into child values (10, 1);
truncate child;
truncate child, parent;
insert into parent values (1, 'at last');

-- Transactions: many rows, one row many times, a key that goes and comes, what is rolled back.
begin;
insert into pair select i, 'many', i, null from generate_series(100, 130) i;
update pair set v = -v where b = 'many';
delete from pair where b = 'many' and a % 3 = 0;
commit;
begin;
insert into plain values (5, 1, 'in'), (6, 1, 'one');
update plain set v = 2 where id = 5;
update plain set v = null where id = 5;
delete from plain where id = 6;
insert into plain values (6, 2, 'again');
update plain set id = 7 where id = 6;
update plain set id = 6 where id = 7;
commit;
begin;
insert into plain values (8, 1, 'never');
update plain set v = 99 where id = 5;
delete from plain where id = 6;
rollback;
begin;
insert into plain values (8, 2, 'before the savepoint');
savepoint here;
delete from plain where id = 8;
truncate plain;
rollback to here;
update plain set v = 3 where id = 8;
commit;
begin;
truncate plain;
insert into plain values (1, null, 'after the truncate');
commit;
insert into plain values (1, 5, 'conflict') on conflict (id) do update set v = excluded.v;
insert into plain values (1, 5, 'conflict') on conflict do nothing;
merge into plain using (values (1, null::int), (9, 9)) s (id, v) on plain.id = s.id
  when matched then update set v = s.v when not matched then insert (id, v) values (s.id, s.v);
