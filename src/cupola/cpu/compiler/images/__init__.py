"""What PTX comes in: cubins, fat binaries, compressed entries; and linking one image of several."""
