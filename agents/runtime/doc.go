// Package runtime runs agents of our own. One agent's session is one state machine ([Next]), which is pure; a driver
// stores every step before the next begins, and does what the step says: it asks the model, puts calls to people, runs
// tools.
//
//	PLAN → VALIDATE_CALLS → (WAIT_ACK) → EXECUTE → OBSERVE → COMMIT → PLAN … → TERMINATE
//
// Whoever waits for a person is a row: the worker ends, and an answer begins another one, after a restart as well. What
// was begun and not ended when the daemon was killed is told to the model as such, and never run twice.
//
// step.go and state.go are the machine; runtime.go and worker.go the driver, resident.go its person's side; plan.go,
// validate.go, wait.go, execute.go and close.go its states; toolbox.go the tools of others, asking.go those that ask people,
// and answer.go what these are told; children.go, schedule.go and witness.go what agents do besides their person's chat.
package runtime
