"""Starts the server of a bundle; `uv` has installed it, as `pyproject.toml` beside this file says."""

from kg_server.__main__ import main

if __name__ == "__main__":
    main()
