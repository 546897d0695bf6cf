package store

// Passed is called, if it is set, of each commit when it is about to be made ("group.before") and when it has been made and
// none of those who wait for it was answered ("group.after"), with the number of writes that it holds. Only tests set
// it, before a store is opened.
var Passed func(point string, writes int)

func passed(point string, writes int) {
	if Passed != nil {
		Passed(point, writes)
	}
}
