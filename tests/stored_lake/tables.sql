-- What the first snapshot reads.
create table orders (order_id bigint primary key, customer text not null, total numeric(12,2),
  placed_at timestamptz not null, details jsonb, note text);
alter table orders alter note set storage external;
create table order_lines (order_id bigint, line_no integer, sku text, price numeric(10,2),
  primary key (order_id, line_no));
create table shipments (shipment_id bigint primary key, order_id bigint not null,
  weight numeric(8,3), sent_at timestamptz, state text);
insert into orders select i, 'customer ' || i, i * 10.25,
  timestamptz '2026-01-01 00:00:00.123456+00' + i * interval '1 hour',
  jsonb_build_object('big', 12345678901234567890.125, 'i', i), case when i in (2, 4)
    then (select string_agg(md5(i || '.' || part), '') from generate_series(1, 100) part)
    else 'note ' || i end
  from generate_series(1, 6) i;
insert into order_lines select i, j, 'sku ' || j, i + j * 0.25
  from generate_series(1, 4) i, generate_series(1, 3) j;
insert into shipments select i, i, i * 1.125, null, 'gone' from generate_series(1, 3) i;
