"""The `gesim` command: thin, one file a subcommand."""
