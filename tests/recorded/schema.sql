-- A table that changes its shape under the connector, and a file that follows later.
create table shifting (id int primary key, a int, b text, c numeric(6,2), d date not null);
insert into shifting values (1, 1, 'one', 1.50, '2024-01-01'), (2, 2, null, null, '2024-01-02');
create type mood as enum ('sad');
create table labelled (id int primary key, mood mood);
insert into labelled values (1, 'sad');

--! stream

insert into shifting values (3, 3, 'three', 3.50, '2024-01-03');
-- Nobody has declared the new column yet; it comes with the next file.
alter table shifting add e int default 5;
insert into shifting values (4, 4, 'four', 4.50, '2024-01-04', 44);
insert into shifting (id, d) values (5, '2024-01-05');
update shifting set a = 10 where id = 1;
-- Relaxed, widened, with more digits than the file says, renamed, dropped.
alter table shifting alter d drop not null;
insert into shifting values (6, 6, 'six', 6.50, null, null);
alter table shifting alter a type bigint;
insert into shifting values (7, 7, 'seven', 7.50, null, null),
  (8, 3000000000, null, null, null, null);
alter table shifting alter c type numeric(12,4);
insert into shifting values (9, 9, null, 9.5000, null, null), (10, 10, null, 9.1234, null, null);
alter table shifting rename b to text;
insert into shifting values (11, 11, 'eleven', 11.5, null, null);
alter table shifting drop d;
insert into shifting values (12, 12, 'twelve', 12.5, null);
delete from shifting where id = 2;
alter type mood add value 'new';
insert into labelled values (2, 'new');
update labelled set mood = 'new' where id = 1;

--! declare schema_after.yaml

insert into shifting values (13, 3000000000, 'thirteen', 13.1234, 13);
update shifting set e = null where id = 4;
update shifting set id = 120 where id = 12;
