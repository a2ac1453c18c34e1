"""Files that trainers read as meant."""
