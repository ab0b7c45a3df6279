-- Changes that the stored states hold, after one run of the apply job.
-- the large note is not sent
update orders set total = total + 0.5 where order_id = 2;
-- nor with a new key
update orders set order_id = 14 where order_id = 4;
update orders set details = '{"nested": {"a": [1, null, "ü"]}}', note = null where order_id = 1;
delete from orders where order_id = 3;
insert into orders values (7, 'customer 7', 'NaN', '2026-02-07 00:00+00', null, 'no number');
insert into orders values (8, 'customer 8', 99999999.99, '2026-02-08 08:08:08.000008+00', '[]', '');
update order_lines set price = -0.01 where order_id = 1 and line_no = 1;
delete from order_lines where line_no = 3;
update order_lines set line_no = 12 where order_id = 2 and line_no = 2;
truncate shipments;
insert into shipments select i, i, i * 1.125, null, 'packed' from generate_series(11, 13) i;
