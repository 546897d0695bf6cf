package admin

// Routes are the patterns of all that deciders may reach.
func (c *Connector) Routes(desk Desk) []string { return c.door(desk).Routes() }
