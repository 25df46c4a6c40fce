"""What leaves the data: public facts, and noisy integers in their archival form."""
