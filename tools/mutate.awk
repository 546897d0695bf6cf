# Judges what tools/mutate found. First comes the list of mutants that may live, tools/mutants.txt: of each a line with the
# file, the mutation and the number of the character at which it is, the line of code as it is there, and why the tests
# cannot tell the mutant, on indented lines. Then comes what was found: outcome, mutation and place, with tabs between.

function complain(text) { print text; failed = 1 }

# code is a line of a file, without the white space around it.
function code(file, number,    line, n) {
	while (n < number && (getline line < file) > 0) n++
	close(file)
	gsub(/^[ \t]+|[ \t]+$/, "", line)
	return line
}

NR == FNR && /^#/ || NF == 0 { next }

NR == FNR && /^[ \t]/ {
	why[key] = why[key] $0
	next
}

NR == FNR && head == "" { # connectors/reply/words.go CONDITIONALS_BOUNDARY 37
	head = $1 " " $2 " " $3
	next
}

NR == FNR {
	key = head "\t" $0
	head = ""
	if (key in why) complain("twice in the list: " key)
	why[key] = ""
	next
}

{
	split($0, found, "\t")
	split(found[3], at, ":")
	total[found[1]]++
	tried[at[1]] = 1
	key = at[1] " " found[2] " " at[3] "\t" code(at[1], at[2])
	places[key]++
	if (found[1] == "KILLED") next
	if (!(key in why))
		complain(found[1] ", and is not explained: " found[2] " at " found[3] "\n    " code(at[1], at[2]))
	lives[key]++
}

END {
	for (key in why) {
		if (why[key] == "") complain("in the list without a reason: " key)
		file = key
		sub(/ .*/, "", file)
		if (why[key] ~ /It never ends/) continue # it may have been ended, and then counts as killed
		if (key in lives && lives[key] < places[key]) complain("in the list for several places, and killed in one: " key)
		if (!(key in lives) && (file in tried || (getline line < file) < 0))
			complain("in the list, and was killed or is no more: " key)
	}
	judged = total["KILLED"] + total["LIVED"]
	if (!judged) complain("there was no mutant")
	else efficacy = 100 * total["KILLED"] / judged
	printf "%d killed, %d live, %d without a result in time: efficacy %.2f %%\n", total["KILLED"], total["LIVED"], \
		total["TIMED OUT"], efficacy
	if (efficacy < 95) complain("which is below 95 %")
	exit failed
}
