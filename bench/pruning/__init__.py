"""What each engine reads to answer the same questions of the same table in eight layouts, counted from outside."""
