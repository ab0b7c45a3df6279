"""What every job needs: arguments, session, stored objects, leases, Iceberg tables."""
