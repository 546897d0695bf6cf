# Reads a Go coverage profile and prints the coverage of each package in statements. Exits 1 if permissions or its registry
# has less than 100 % or another package less than 90 %. A block that several test binaries ran counts once. Packages that are
# themselves suites for tests (storetest, connectortest …) are shown but not judged: their unreached lines are the ones
# that report a failure.
#
# A line of the profile: example.com/pkg/file.go:10.2,12.3 STATEMENTS TIMES

NR > 1 {
	statements[$1] = $2
	if ($3 > 0) run[$1] = 1
}

END {
	for (block in statements) {
		package = block
		sub(/\/[^\/]*$/, "", package)
		total[package] += statements[block]
		if (block in run) covered[package] += statements[block]
	}
	sort = "LC_ALL=C sort"
	for (package in total) {
		want = package ~ /\/permissions(\/registry)?$/ ? 100 : package ~ /test$/ ? 0 : 90
		low = covered[package] * 100 < want * total[package]
		failed = failed || low
		all += total[package]
		hit += covered[package]
		percent = int(covered[package] * 1000 / total[package]) / 10 # rounded down: 100.0 means all
		printf "%-60s %5.1f %% of %5d%s\n", package, percent, total[package], low ? "  below " want " %" : "" | sort
	}
	close(sort)
	if (all == 0) { print "the profile is empty"; exit 1 }
	printf "%-60s %5.1f %% of %5d\n", "all", int(hit * 1000 / all) / 10, all
	exit failed
}
