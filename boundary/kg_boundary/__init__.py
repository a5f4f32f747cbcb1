"""What crosses the edge of the process: text that is shown, secrets that stay, bodies that end."""
