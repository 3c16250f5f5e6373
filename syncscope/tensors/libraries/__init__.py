"""What is known of other libraries: one file a library, named as it is imported.

A file's `call(call)` says what calling a name from there gives, and emits where it waits; None: nothing is known of that name.
What goes by the name of a method or an attribute alone is asked for where those are interpreted.
"""
