// Package archtest tests the architecture of this tree, and what make and its tools promise; nothing imports it.
//
// Imports point inward: permissions imports nothing of ours, connectors (who is asked) and agents (who asks) import
// permissions and never each other, engine joins them, and only cmd/daycared selects the concrete parts. Only one part
// sees the library that it owns, so that exchanging it touches nothing else. A package that is missing from the test's
// tables is refused: add what it may import there. The output of go list is checked, not the text of the files.
package archtest
