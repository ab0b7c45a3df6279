"""The model test on the real lake: random histories as SQL, disturbed, and the truth about them."""
