"""The kit of both products for HTTP: requests and responses, shapes of bodies, entity tags, limits; a server and a client."""
