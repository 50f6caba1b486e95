"""The parsers of other projects on the field cases: `bench.field_peers` runs them."""
