"""The same queries over a network: every engine reads from one object server, whose log has their requests."""
