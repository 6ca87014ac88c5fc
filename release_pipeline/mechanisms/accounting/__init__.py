"""What a release costs, how far one record moves a sum, and the scale of noise that this asks for."""
