package admin

// Routes are the patterns of all that deciders may reach.
func (c *Connector) Routes() []string { return c.newServer().Routes() }
