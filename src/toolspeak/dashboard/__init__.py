"""The pages of the dashboard: templates, styles and scripts, and the values that the templates show.

Nothing here knows HTTP: `gateway/dashboard.py` answers requests below `/ui` with these pages.
"""
