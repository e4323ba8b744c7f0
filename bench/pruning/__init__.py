"""The bytes and pages that each engine reads for the same questions about one table in eight layouts, counted by strace."""
