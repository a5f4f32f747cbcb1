"""Compose: functions of the graph in series and side by side, worked out in one call."""
