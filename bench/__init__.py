"""Benchmarks of pageseek: generators, cases, peers and the report."""
