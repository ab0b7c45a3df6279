-- One table read three times, changed in between, while another one flows.
create table read_again (id int primary key, v int default 42, big text);
alter table read_again alter big set storage external;
create table flowing (id int primary key, v text);
insert into read_again values (1, 1, repeat('b', 3000)), (2, null, null), (3, 3, '');
insert into flowing values (1, 'a');

--! stream

update read_again set v = 2 where id = 1;
insert into flowing values (2, 'b');
--! snapshot incremental public.read_again
update read_again set v = 3 where id = 1;
delete from read_again where id = 2;
insert into flowing values (3, null);
--! snapshot blocking public.read_again
update read_again set v = null where id = 1;
update read_again set id = 4 where id = 1;
update flowing set v = 'c' where id = 3;
