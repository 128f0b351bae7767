"""What people look at: tables, figures, the HTML report, the Perfetto trace."""
