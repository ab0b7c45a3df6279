"""Catalog queries, whose rows `catalog.py` assembles to tables.

`%s` is one bound value. A session that runs these has `search_path = pg_catalog`, so that user
objects shadow nothing and type names are complete.
"""

from __future__ import annotations

# Every relation with rows, in every schema: partitions may be in another schema than their root.
# The last three: file, transactions that attached the partition (one per level), and whether these
# also created it.
RELATIONS = """
SELECT c.oid::bigint, n.nspname::text, c.relname::text, c.relkind::text, c.relpersistence::text,
       c.relreplident::text,
       CASE WHEN c.relispartition THEN pg_partition_root(c.oid)::oid::bigint END,
       c.relkind = 'r' AND EXISTS (SELECT FROM pg_inherits h WHERE h.inhparent = c.oid),
       c.relrowsecurity, greatest(c.reltuples, 0)::bigint, pg_has_role(c.relowner, 'USAGE'),
       c.relfilenode::bigint,
       coalesce((SELECT string_agg(h.xmin::text, ' ' ORDER BY h.xmin::text)
                 FROM pg_partition_ancestors(c.oid) x
                 JOIN pg_inherits h ON h.inhrelid = x.relid WHERE c.relispartition), ''),
       c.relispartition AND NOT EXISTS (
         SELECT FROM pg_partition_ancestors(c.oid) x
         JOIN pg_inherits h ON h.inhrelid = x.relid
         JOIN pg_attribute a ON a.attrelid = x.relid AND a.attname = 'tableoid'
         WHERE a.xmin <> h.xmin)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
  AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
ORDER BY n.nspname, c.relname
"""

# Partitions with rows of the transaction that created and attached them: their first rows may be
# older than the attachment. Only the first block is read. Rows of a savepoint have a later id and a
# command after CREATE TABLE and before ATTACH PARTITION, which updates the rows of the columns:
# savepoints share the transaction's counter of commands. A row of another transaction that began
# soon afterwards may match, too.
LOADED_BEFORE = """
SELECT DISTINCT t.tableoid::bigint FROM {table} t
WHERE t.ctid < '(1,0)' AND t.tableoid = ANY(%s::bigint[]::oid[]) AND (
  t.xmin::text = ANY(%s)
  OR EXISTS (
    SELECT FROM pg_partition_ancestors(t.tableoid) x
    JOIN pg_inherits h ON h.inhrelid = x.relid
    JOIN pg_attribute s ON s.attrelid = x.relid AND s.attname = 'tableoid'
    JOIN pg_attribute c ON c.attrelid = x.relid AND c.attnum > 0 AND c.xmin = h.xmin
    WHERE c.cmin::text <> s.cmin::text
      AND age(h.xmin)::bigint - age(t.xmin) BETWEEN 1 AND 10000
      AND t.cmin::text::bigint > s.cmin::text::bigint
      AND t.cmin::text::bigint < h.cmin::text::bigint))
"""

# Foreign tables that the named relations read: by views, as partitions or as inheriting tables.
FOREIGN_TABLES = """
WITH RECURSIVE source (oid) AS (
  SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN unnest(%s::text[], %s::text[]) AS named (schema, name)
    ON named.schema = n.nspname AND named.name = c.relname
  UNION
  SELECT used.oid FROM source s CROSS JOIN LATERAL (
    SELECT d.refobjid FROM pg_rewrite r
    JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
    WHERE r.ev_class = s.oid AND r.ev_type = '1' AND d.refclassid = 'pg_class'::regclass
    UNION ALL SELECT h.inhrelid FROM pg_inherits h WHERE h.inhparent = s.oid
  ) AS used (oid)
)
SELECT n.nspname::text, c.relname::text
FROM source s JOIN pg_class c ON c.oid = s.oid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'f' ORDER BY n.nspname, c.relname
"""

# A domain has its own type modifier, which replaces that of the column: each step uses it. The last
# three: the fractional digits of money by lc_monetary, the labels of an enum by oid, and the types
# that Debezium may find by the type's name. It searches the table's schema first, then all schemas
# in an undefined order; built-in types come before others there. Alike types have the same values.
COLUMNS = """
WITH RECURSIVE step AS (
  SELECT a.attrelid, a.attnum, a.atttypid AS typid, a.atttypmod AS typmod,
         a.attndims::int AS dims, 0 AS depth
  FROM pg_attribute a
  WHERE a.attrelid = ANY(%s::bigint[]::oid[]) AND a.attnum > 0 AND NOT a.attisdropped
  UNION ALL
  SELECT s.attrelid, s.attnum, t.typbasetype, t.typtypmod,
         greatest(s.dims, t.typndims), s.depth + 1
  FROM step s JOIN pg_type t ON t.oid = s.typid WHERE t.typtype = 'd'
)
SELECT a.attrelid::bigint, a.attname::text, format_type(a.atttypid, a.atttypmod),
       format_type(s.typid, s.typmod), e.oid <> t.oid, e.typtype::text, en.nspname::text,
       (SELECT x.extname::text FROM pg_depend d JOIN pg_extension x ON x.oid = d.refobjid
        WHERE d.classid = 'pg_type'::regclass AND d.objid = e.oid
          AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'),
       s.dims, NOT a.attnotnull, a.attgenerated <> '',
       a.attidentity <> '' OR coalesce(pg_get_expr(b.adbin, b.adrelid) ~ 'nextval|uuid', false),
       a.attnum::int,
       EXISTS (SELECT FROM pg_constraint k WHERE k.conrelid = a.attrelid AND k.contype = 'n'
               AND k.conkey[1] = a.attnum AND NOT k.convalidated),
       CASE WHEN e.oid = 'money'::regtype THEN scale(1::numeric::money::numeric) END,
       CASE WHEN e.typtype = 'e' THEN
         (SELECT jsonb_object_agg(l.oid::text, l.enumlabel) FROM pg_enum l
          WHERE l.enumtypid = e.oid) END,
       ARRAY(SELECT x.oid::regtype::text FROM pg_type x
             JOIN pg_namespace xn ON xn.oid = x.typnamespace
             JOIN pg_type xe ON xe.oid = CASE WHEN x.typcategory = 'A' AND x.typelem <> 0
                                         THEN x.typelem ELSE x.oid END
             WHERE x.typname = o.typname AND x.oid <> o.oid AND xn.nspname !~ '^pg_(toast|temp)'
             AND (x.typnamespace = c.relnamespace
                  OR o.typnamespace NOT IN (c.relnamespace, 'pg_catalog'::regnamespace))
             AND NOT (e.typtype = 'e' AND xe.typtype = 'e' AND x.typcategory = t.typcategory)
             AND NOT (x.typtype = 'd' AND o.typtype = 'd'
                      AND (x.typbasetype, x.typtypmod) = (o.typbasetype, o.typtypmod))
             ORDER BY 1)
FROM step s
JOIN pg_type t ON t.oid = s.typid AND t.typtype <> 'd'
JOIN pg_type e
  ON e.oid = CASE WHEN t.typcategory = 'A' AND t.typelem <> 0 THEN t.typelem ELSE t.oid END
JOIN pg_namespace en ON en.oid = e.typnamespace
JOIN pg_attribute a ON a.attrelid = s.attrelid AND a.attnum = s.attnum
JOIN pg_type o ON o.oid = a.atttypid
JOIN pg_class c ON c.oid = a.attrelid
LEFT JOIN pg_attrdef b ON b.adrelid = a.attrelid AND b.adnum = a.attnum AND a.attgenerated = ''
ORDER BY a.attrelid, a.attnum
"""

# Columns of a query's result, by the numbers that libpq has for it: never those of a domain.
RESULT_COLUMNS = """
SELECT c.name, format_type(t.oid, c.typmod), e.oid <> t.oid, e.typtype::text, n.nspname::text,
       (SELECT x.extname::text FROM pg_depend d JOIN pg_extension x ON x.oid = d.refobjid
        WHERE d.classid = 'pg_type'::regclass AND d.objid = e.oid
          AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e')
FROM unnest(%s::text[], %s::bigint[], %s::int[]) WITH ORDINALITY c (name, typid, typmod, number)
JOIN pg_type t ON t.oid = c.typid::oid
JOIN pg_type e
  ON e.oid = CASE WHEN t.typcategory = 'A' AND t.typelem <> 0 THEN t.typelem ELSE t.oid END
JOIN pg_namespace n ON n.oid = e.typnamespace
ORDER BY c.number
"""

# Schemas of the search path, without those of the system.
QUERY_SCHEMAS = """
SELECT name::text FROM unnest(current_schemas(false)) WITH ORDINALITY AS path (name, number)
WHERE name !~ '^pg_' ORDER BY number
"""

# `identifies`: PostgreSQL's requirements for an index that serves as replica identity.
INDEXES = """
SELECT i.indrelid::bigint, c.relname::text,
       ARRAY(SELECT a.attname::text FROM unnest(i.indkey::int2[]) WITH ORDINALITY k(num, pos)
             JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.num
             WHERE k.pos <= i.indnkeyatts ORDER BY k.pos),
       i.indisprimary, i.indisreplident,
       i.indisvalid AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL
       AND NOT EXISTS (SELECT FROM unnest(i.indkey::int2[]) WITH ORDINALITY k(num, pos)
                       JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.num
                       WHERE k.pos <= i.indnkeyatts AND NOT a.attnotnull),
       (SELECT r.relname::text FROM pg_class r
        WHERE c.relispartition AND r.oid = pg_partition_root(c.oid)),
       i.indimmediate
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = ANY(%s::bigint[]::oid[]) AND i.indisunique
ORDER BY i.indrelid, NOT i.indisprimary, c.relname
"""

# One row: the server's settings, our privileges, and its remaining slots.
SERVER = """
SELECT current_setting('server_version_num')::int, current_setting('wal_level'),
       pg_is_in_recovery(), current_database()::text, current_user::text,
       u.rolsuper, u.rolcreaterole, u.rolreplication,
       has_database_privilege(current_database(), 'CREATE'),
       EXISTS (SELECT FROM pg_roles WHERE rolname = 'rds_replication'),
       coalesce(r.rolreplication, false), coalesce(r.rolbypassrls OR r.rolsuper, false),
       r.oid IS NOT NULL,
       current_setting('max_replication_slots')::int,
       (SELECT count(*)::int FROM pg_replication_slots),
       current_setting('max_wal_senders')::int,
       (SELECT count(*)::int FROM pg_stat_replication),
       s.slot_name IS NOT NULL, coalesce(s.active, false), coalesce(s.plugin::text, ''),
       coalesce(s.database::text, ''), coalesce(s.wal_status, ''),
       EXISTS (SELECT FROM pg_publication WHERE pubname = %s),
       coalesce(shobj_description(r.oid, 'pg_authid'), ''),
       (SELECT setting::int FROM pg_settings WHERE name = 'max_slot_wal_keep_size'),
       to_regproc('aurora_version') IS NOT NULL, current_setting('server_encoding')
FROM pg_roles u
LEFT JOIN pg_roles r ON r.rolname = %s
LEFT JOIN pg_replication_slots s ON s.slot_name = %s
WHERE u.rolname = current_user
"""

PUBLICATION = """
SELECT p.puballtables, p.pubviaroot AND p.pubinsert AND p.pubupdate AND p.pubdelete
       AND p.pubtruncate
FROM pg_publication p WHERE p.pubname = %s
"""

PUBLISHED = """
SELECT n.nspname::text, c.relname::text,
       CASE WHEN pr.prattrs IS NOT NULL THEN
         ARRAY(SELECT a.attname::text FROM pg_attribute a
               WHERE a.attrelid = c.oid AND a.attnum = ANY(pr.prattrs::int2[])
               ORDER BY a.attnum) END,
       pr.prqual IS NOT NULL
FROM pg_publication_rel pr
JOIN pg_publication p ON p.oid = pr.prpubid
JOIN pg_class c ON c.oid = pr.prrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE p.pubname = %s
"""

# Every relation with a privilege of the role, on the table or on columns.
GRANTED = """
SELECT DISTINCT n.nspname::text, c.relname::text
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_roles r ON r.rolname = %s
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
  AND (EXISTS (SELECT FROM aclexplode(c.relacl) x WHERE x.grantee = r.oid)
       OR EXISTS (SELECT FROM pg_attribute a, aclexplode(a.attacl) x
                  WHERE a.attrelid = c.oid AND x.grantee = r.oid))
"""

# One row per object on which the pipeline's role needs a privilege, and which may belong to another
# role: whether the role has it (PUBLIC, as long as there is no role), and whether it has it or we
# may grant it. Without columns a relation is read as a whole.
ROLE_RIGHTS = """
WITH role AS (
  SELECT coalesce((SELECT rolname FROM pg_roles WHERE rolname = %(role)s), 'public') AS name
)
SELECT 'database', '', d.datname::text, pg_get_userbyid(d.datdba)::text,
       has_database_privilege(role.name, d.oid, 'CONNECT'),
       has_database_privilege(role.name, d.oid, 'CONNECT')
       OR has_database_privilege(d.oid, 'CONNECT WITH GRANT OPTION')
FROM role, pg_database d WHERE d.datname = current_database()
UNION ALL
SELECT 'schema', '', n.nspname::text, pg_get_userbyid(n.nspowner)::text,
       has_schema_privilege(role.name, n.oid, 'USAGE'),
       has_schema_privilege(role.name, n.oid, 'USAGE')
       OR has_schema_privilege(n.oid, 'USAGE WITH GRANT OPTION')
FROM role, pg_namespace n WHERE n.nspname = ANY(%(schemas)s::text[])
UNION ALL
SELECT 'relation', n.nspname::text, c.relname::text, pg_get_userbyid(c.relowner)::text,
       bool_and(given.has), bool_and(given.has OR given.may_grant)
FROM role
CROSS JOIN unnest(%(tables)s::text[], %(names)s::text[], %(columns)s::text[])
  AS wanted (schema, name, field)
JOIN pg_namespace n ON n.nspname = wanted.schema
JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = wanted.name
CROSS JOIN LATERAL (
  SELECT has_table_privilege(role.name, c.oid, 'SELECT'),
         has_table_privilege(c.oid, 'SELECT WITH GRANT OPTION')
  WHERE wanted.field IS NULL
  UNION ALL
  SELECT has_column_privilege(role.name, c.oid, wanted.field, 'SELECT'),
         has_column_privilege(c.oid, wanted.field, 'SELECT WITH GRANT OPTION')
  WHERE wanted.field IS NOT NULL
) AS given (has, may_grant)
GROUP BY n.nspname, c.relname, c.relowner
ORDER BY 1, 2, 3
"""

CONFIRMED_LSN = """
SELECT (confirmed_flush_lsn - '0/0'::pg_lsn)::bigint
FROM pg_replication_slots WHERE slot_name = %s
"""

SLOT_WAL = """
SELECT (SELECT greatest(pg_current_wal_lsn() - restart_lsn, 0)::bigint
        FROM pg_replication_slots WHERE slot_name = %s),
       (SELECT nullif(setting::bigint, -1) * 1024 * 1024
        FROM pg_settings WHERE name = 'max_slot_wal_keep_size'),
       (pg_current_wal_lsn() - '0/0')::bigint,
       (SELECT greatest(pg_current_wal_lsn() - confirmed_flush_lsn, 0)::bigint
        FROM pg_replication_slots WHERE slot_name = %s)
"""

# As JSON, because servers before 17 have neither the column nor the setting.
SLOT_FAILOVER = """
SELECT (SELECT (to_jsonb(s) ->> 'failover')::boolean
        FROM pg_replication_slots s WHERE slot_name = %s),
       (SELECT count(*)::int FROM pg_replication_slots WHERE slot_type = 'physical' AND active),
       current_setting('synchronized_standby_slots', true)
"""

# Everyone may call it by default; it stays the same at a failover and on a physical copy.
MAY_IDENTIFY = "SELECT has_function_privilege('pg_control_system()', 'EXECUTE')"
SYSTEM_IDENTIFIER = "SELECT system_identifier::text FROM pg_control_system()"
DATABASE_OID = "SELECT oid::text FROM pg_database WHERE datname = current_database()"

IN_PROGRESS = "SELECT pg_snapshot_xip(pg_current_snapshot())::text"  # transactions that write
WAL_POSITION = "SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint"

# What `down` may remove from the source, as it is shown; `name` is the pipeline's role and slot.
OUR_OBJECTS = """
SELECT 'slot ' || slot_name FROM pg_replication_slots
WHERE slot_name = %(name)s AND database = current_database()
UNION ALL SELECT 'publication ' || pubname FROM pg_publication WHERE pubname = %(name)s
UNION ALL SELECT 'schema ' || nspname FROM pg_namespace WHERE nspname = 'cdclake'
UNION ALL SELECT 'role ' || rolname FROM pg_roles WHERE rolname = %(name)s
"""
