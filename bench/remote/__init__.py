"""The same questions over a network: every engine against one object server, whose log tells what they asked for."""
