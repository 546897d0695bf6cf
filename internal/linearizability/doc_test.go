// Package linear tests that decisions are linearizable: whatever many clients do to one request concurrently over real
// sockets, their replies are possible in some sequential order.
//
// A scenario is one question with 8 to 64 clients that ask it, answer it, cancel it, revoke approvals, tap twice, lose the
// reply and stop everything while its deadline comes (scenario_test.go). All replies go into a history (history_test.go),
// which porcupine checks per request against a model of one request that shares no code with the daemon
// (model_test.go). The engine, its store and the sockets are real (env_test.go).
//
// The same holds for three daemons on one PostgreSQL (daemons_test.go), each a process, of which one is killed, halted or cut off, or whose
// PostgreSQL is stopped, while the clients (life_test.go) reach any of them, or answer on phones (trouble_test.go). A call without a reply
// may have happened, then or later. A daemon is cut off by a way to PostgreSQL on which nothing passes any more, which is what it
// would see of a network that is cut.
//
// LINEAR_OPS is the number of calls, 100,000 by default. LINEAR_SEED seeds the random generators: the same seed has the
// same scenes and clients; their interleaving is the machine's.
package linearizability
