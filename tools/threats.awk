# Counts the cases of each threat. First comes the list of threats, tools/threats.txt; then what go test -json prints. A
# case is a subtest without subtests whose name has the form THREAT/CASE, such as TestTaps/A1/a_stranger.

function complain(text) { print text; failed = 1 }

function member(name) {
	if (!match($0, "\"" name "\":\"([^\"\\\\]|\\\\.)*\"")) return ""
	return substr($0, RSTART + length(name) + 4, RLENGTH - length(name) - 5)
}

NR == FNR && /^#/ || NF == 0 { next }

NR == FNR && /^[ \t]/ {
	note[threats[n]] = note[threats[n]] "\n" $0
	next
}

NR == FNR {
	threats[++n] = $1
	title[$1] = substr($0, length($1) + 2)
	next
}

/"Action":"(output|build-output|pause|cont|start)"/ { next }

{
	action = member("Action")
	test = member("Test")
	key = member("Package") "\t" test
	if (test == "" && action ~ /fail/) complain("failed: " member("Package") member("ImportPath"))
	if (test == "" || action == "skip") next
	if (action != "run") outcome[key] = action
	while (action == "run" && sub(/\/[^\/]*$/, "", key)) parent[key] = 1
}

END {
	for (key in outcome) {
		if (key in parent) continue
		parts = split(substr(key, index(key, "\t") + 1), part, "/")
		for (i = 2; i < parts && part[i] !~ /^[A-H][0-9]+$/; i++) ;
		if (i >= parts) continue
		if (!(part[i] in title)) complain("names no threat: " key)
		cases[part[i]]++
		all++
		if (outcome[key] == "fail") {
			failures[part[i]]++
			complain("failed: " key)
		}
	}
	for (i = 1; i <= n; i++) {
		id = threats[i]
		result = !cases[id] ? "no case" : failures[id] ? failures[id] " failed" : "held"
		if (!cases[id]) failed = 1
		printf "%-3s %4d  %-8s  %s%s\n", id, cases[id], result, title[id], note[id]
	}
	printf "%d threats, %d cases\n", n, all
	if (all < 900) complain("which is fewer than 900")
	exit failed
}
