"""What is known of other libraries: one file a library, named as it is imported."""
