"""The functions of the namespace, in files for what they do. Each says in ``__all__`` which are public."""
