"""What is known of torch: what its functions and methods give back, and where they make the host wait."""
