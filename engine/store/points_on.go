//go:build failpoints

package store

// Passed is told of each commit when it is about to be made ("group.before"), when it has been made and none of those who
// wait for it was told ("group.after"), and how many writes it holds. Set it before a store is opened.
var Passed func(point string, writes int)

func passed(point string, writes int) {
	if Passed != nil {
		Passed(point, writes)
	}
}
