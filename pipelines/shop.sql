-- The tables of pipelines/shop.yaml: run it with `cdclake source sql` or psql.
CREATE TYPE order_status AS ENUM ('placed', 'paid', 'packed', 'shipped', 'delivered', 'returned');
CREATE TABLE customers (
    customer_id bigint PRIMARY KEY,
    name text NOT NULL,
    email text NOT NULL,
    phone text,
    address text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE orders (
    order_id bigint PRIMARY KEY,
    customer_id bigint NOT NULL REFERENCES customers DEFERRABLE INITIALLY DEFERRED,
    status order_status NOT NULL,
    total numeric(12,2) NOT NULL,
    details jsonb,
    note text,
    ordered_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX ON orders (customer_id);
CREATE TABLE order_items (
    order_id bigint NOT NULL REFERENCES orders DEFERRABLE INITIALLY DEFERRED,
    line_no integer NOT NULL,
    sku text NOT NULL,
    quantity integer NOT NULL,
    unit_price numeric(10,2) NOT NULL,
    discount numeric(5,4),
    gift boolean NOT NULL,
    PRIMARY KEY (order_id, line_no)
);
