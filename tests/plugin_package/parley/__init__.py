"""Another package's dialect (`whisper`) and wire (`parley`)."""
