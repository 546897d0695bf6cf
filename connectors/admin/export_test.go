package admin

// Routes are the patterns of all that deciders may reach.
func (c *Connector) Routes(desk Operations) []string { return c.door(desk).Routes() }
