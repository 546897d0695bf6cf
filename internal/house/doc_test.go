// Package house holds the walls of this tree, and what make and its tools promise, by tests alone; nothing imports it.
//
// Imports point inward: permissions imports nothing of ours, connectors (who is asked) and agents (who asks) import
// permissions and never each other, engine joins them, and only cmd/daycared picks the real parts. A library that
// belongs to one part is seen by that part only, so that exchanging it touches nothing else. A package that has no
// place in the tables of the test has no place in the house: say there what it may import.
//
// The linter holds the same walls from the text of each file; here they are held from what go list says.
package house
