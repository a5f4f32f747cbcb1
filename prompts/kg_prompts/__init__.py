"""Prompt templates as data."""
