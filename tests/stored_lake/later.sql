-- Changes that the stored lake has not read: their Kafka records are stored next to it.
-- the note is in the stored state alone
update orders set total = 100 where order_id = 2;
-- so is this row's, under the old key
update orders set order_id = 24 where order_id = 14;
update orders set customer = 'another', placed_at = '2026-04-01 00:00+00' where order_id = 5;
update orders set total = 'NaN' where order_id = 6;
insert into orders values (30, 'customer 30', 0, '2026-04-30 00:00+00', '{}', 'new');
delete from orders where order_id = 8;
-- deleted before
insert into order_lines values (1, 3, 'sku again', 3);
delete from order_lines where order_id = 1 and line_no = 2;
update shipments set weight = 2.5 where shipment_id = 11;
delete from shipments where shipment_id = 14;
insert into shipments values (15, 24, null, null, null);
