"""Keeps a site going: its timetable, its state, alerts, backups."""
