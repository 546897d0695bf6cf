// Package simulation lives through days that went wrong, thousands of them: the real engine, with its registry, dispatchers,
// reconciler and notifier, between a store, three channels and a clock that are in memory and do what a seed says. Nothing is
// here but tests.
//
// One goroutine, the driver (world_test.go, day_test.go), decides everything. Every call that the engine makes to its
// store or to a channel stops at a gate until the driver lets one pass: whole, failing, failing after it took effect,
// late, or with the daemon killed before or after it. Between two decisions everything else in the bubble has come to
// rest (testing/synctest), so that who goes first is drawn from the seed as well, and the same seed is the same day. The
// order in which goroutines run between two calls is not fixed: workers that make the same call pass the gate together.
//
// The store (shelf_test.go) passes the suite of the real one as far as it goes, and some days are lived on SQLite as
// well, with the same trace. The judge (judge_test.go, evening_test.go) sees every commit and knows what people and
// programs really did; it holds the promises against that without [permissions.Step]. broken_test.go breaks stores on
// purpose: the judge finds each of them out.
//
//	make replay SEED=17     tells what happened on one day
package simulation
