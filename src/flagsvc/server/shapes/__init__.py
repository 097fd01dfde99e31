"""The shapes of the bodies that batch operations carry."""
