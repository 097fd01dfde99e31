"""Who signs in beside tokens and links: the persons that a proxy in front names, or an OpenID provider (decision 0061)."""
