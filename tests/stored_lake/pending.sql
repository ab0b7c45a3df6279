-- Changes that the changelog of `shipments` holds and its state does not.
insert into shipments values (14, 14, 0.001, '2026-03-01 12:00+00', 'sent');
update shipments set state = 'sent', sent_at = '2026-03-02 12:00+00' where shipment_id = 11;
delete from shipments where shipment_id = 12;
update orders set total = total + 1 where order_id in (2, 5);
