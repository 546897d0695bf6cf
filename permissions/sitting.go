package permissions

// Sitting is a session of an agent of ours as people are told of it: with the request that it waits for, if it does.
type Sitting struct {
	Session AgentSession
	// WaitsOn is the request as it stands; without an ID where the session waits for nothing, or that is no longer kept.
	WaitsOn Request
}
