"""How one value of all lanes is held and combined."""
