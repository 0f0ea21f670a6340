"""LanceDB: schema, tables, filters, leases, indexes."""
