"""Reads files of any form as statements."""
