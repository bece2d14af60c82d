"""Every checkpoint of some projects with its scores as columns, kept from one question to the next."""
