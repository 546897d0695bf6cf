// Package linear shows that deciding is linearizable: whatever many clients do to one request at once over real
// sockets, what each of them is told is what they could have been told had they come one after another.
//
// A scene is one question, and 8 to 64 clients that ask it, answer it, cancel it, take approvals back, tap twice, lose
// the reply and stop everything, while its deadline comes (scene_test.go). What each of them was told goes into a history
// (history_test.go), which porcupine checks request by request against a model of one request that shares no code with
// the daemon (model_test.go). The engine, its store and the sockets are the real ones (stage_test.go).
//
// LINEAR_OPS is how many calls are made, 100,000 by default. LINEAR_SEED is where the dice begin: the same seed has the same
// scenes played by the same clients, who meet as the machine has it.
package linear
