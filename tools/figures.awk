# figures.awk, with LC_ALL=C: reads the goals of tools/goals.txt and then the output of the benchmarks, and prints the figures as a table
# for a terminal (as=text), as the section of docs/performance.md (as=page) or as its picture (as=picture).

function fail(text) { print "figures: " text | "cat >&2"; failed = 1; exit 1 }

FNR == NR && (/^#/ || NF == 0) { next }
FNR == NR {
	if (split($0, f, / *\| */) != 10) fail("read the goals: a line does not have 10 columns: " $0)
	n++; id[n] = f[1]; bench[n] = f[7]; units[n] = f[8]; what[n] = f[9]; against[n] = f[10]
	split(f[2], part, " "); op[n] = part[1]; limit[n] = part[2] + 0; of[n] = part[4]
	next
}
/^(cores|toolchain|disk|goos|goarch|cpu): / { key = $1; sub(/:$/, "", key); rest = $0; sub(/^[a-z]*: */, "", rest); about[key] = rest }
/^Benchmark/ && NF > 1 {
	for (i = 1; i <= n; i++) {
		if (index($1, "Benchmark" bench[i]) != 1) continue
		rest = substr($1, length("Benchmark" bench[i]) + 1)
		if (rest != "" && rest !~ /^-[0-9]+$/) continue # the processors
		line = 0
		for (u = split(units[i], unit, " "); u > 0; u--) line += reported(i, unit[u])
		v[i, ++runs[i]] = line; sum[i] += line
		if (of[i] != "") many[i] += reported(i, of[i])
	}
}

# reported is a figure of this line by its unit.
function reported(i, name,    k) {
	for (k = 3; k < NF; k += 2) {
		if ($k !~ /^-?[0-9.]+(e[-+]?[0-9]+)?$/) fail("read the output of the benchmarks: " $k " is no number, in " $1)
		if ($(k + 1) == name) return $k + 0
	}
	fail(id[i] ": Benchmark" bench[i] " reports no " name)
}

END {
	if (failed) exit 1
	for (i = 1; i <= n; i++) settle(i)
	for (view = 1; view <= 2; view++) # from outside first
		for (number = 1; number <= 99; number++)
			for (i = 1; i <= n; i++) if (id[i] == substr("UP", view, 1) number) order[++rows] = i
	head = "Measured on " about["cores"] " cores (" about["cpu"] ", " about["goos"] "/" about["goarch"] "), " about["disk"] ", " about["toolchain"] "."
	if (as == "picture") picture(); else if (as == "page") page(); else terminal()
}

# settle sorts the runs of a goal and finds its figure.
function settle(i,    a, b, least) {
	if (!runs[i]) fail(id[i] ": Benchmark" bench[i] " was not run")
	for (a = 2; a <= runs[i]; a++) {
		least = v[i, a]
		for (b = a - 1; b > 0 && v[i, b] > least; b--) v[i, b + 1] = v[i, b]
		v[i, b + 1] = least
	}
	low[i] = v[i, 1]; middle[i] = v[i, int(runs[i] / 2) + 1]; high[i] = v[i, runs[i]]
	if (op[i] == "=") low[i] = middle[i] = high[i] = sum[i]
	met[i] = op[i] == ">=" ? middle[i] >= limit[i] : middle[i] <= limit[i]
	value[i] = op[i] == "=" ? thousands(sum[i]) " of " thousands(many[i]) : sprintf("%.2f (%.2f–%.2f)", middle[i], low[i], high[i])
	goal[i] = (op[i] == "=" ? "" : op[i] == ">=" ? "≥ " : "≤ ") limit[i]
}

function thousands(v,    text, k) {
	text = sprintf("%d", v)
	for (k = length(text) - 3; k > 0; k -= 3) text = substr(text, 1, k) "," substr(text, k + 1)
	return text
}

function terminal(    r, i, c, width, cell) {
	print head
	split("|measured|against|ratio|goal|", cell, "|")
	for (c = 1; c <= 6; c++) table[0, c] = cell[c]
	for (r = 1; r <= rows; r++) {
		i = order[r]
		split(id[i] "|" what[i] "|" against[i] "|" value[i] "|" goal[i] "|" verdict(i, "not met"), cell, "|")
		for (c = 1; c <= 6; c++) { table[r, c] = cell[c]; if (signs(cell[c]) > width[c]) width[c] = signs(cell[c]) }
	}
	for (r = 0; r <= rows; r++)
		for (c = 1; c <= 6; c++) {
			printf("%s", table[r, c])
			for (i = signs(table[r, c]); c < 6 && i < width[c] + 2; i++) printf(" ")
			if (c == 6) print ""
		}
}

function verdict(i, missed) { return met[i] ? "met" : missed }

# signs counts the characters of a text in UTF-8.
function signs(text) { gsub(/[\200-\277]/, "", text); return length(text) }

function page(    r, i) {
	print head "\nMedian (least–most).\n\n![Each figure beside its goal](performance.svg)\n"
	print "| | measured | against | ratio | goal | |\n|---|---|---|---|---|---|"
	for (r = 1; r <= rows; r++) {
		i = order[r]
		print "| " id[i] " | " what[i] " | " against[i] " | " value[i] " | " goal[i] " | " verdict(i, "**not met**") " |"
	}
}

# picture draws a bar for each figure, as long as the figure by its goal, which is at the same place for all. A bar that would be longer
# than 290 is cut, and says so. A thin line goes from the least to the most.
function picture(    r, i, y, inside, height) {
	for (i = 1; i <= n; i++) { inside += met[i]; bars++ }
	height = 44 + 34 * bars + 16
	printf("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"900\" height=\"%d\" viewBox=\"0 0 900 %d\" ", height, height)
	printf("font-family=\"system-ui, sans-serif\" font-size=\"13\" role=\"img\" aria-label=\"%d of %d figures are within their goals\">\n", inside, bars)
	print "<style>\n.t{fill:#1a1a1a}.s{fill:#5b6770}.g{stroke:#5b6770}.w{stroke:#1a1a1a}.y{fill:#3f9b4f}.n{fill:#c0483f}"
	print "@media (prefers-color-scheme:dark){.t{fill:#e8edf0}.s{fill:#9fadb6}.g{stroke:#9fadb6}.w{stroke:#e8edf0}}\n</style>"
	print "<text x=\"780\" y=\"20\" class=\"s\" text-anchor=\"middle\">goal</text>\n<text x=\"580\" y=\"20\" class=\"s\">◂ better</text>"
	for (r = 1; r <= rows; r++) {
		i = order[r]
		y = 44 + 34 * drawn++
		printf("<text x=\"16\" y=\"%d\" class=\"t\"><tspan font-weight=\"600\">%s</tspan> %s</text>\n", y + 10, id[i], escaped(what[i]))
		printf("<text x=\"16\" y=\"%d\" class=\"s\" font-size=\"11\">to %s: %s, goal %s</text>\n", y + 24, escaped(against[i]), value[i], goal[i])
		printf("<rect x=\"580\" y=\"%d\" width=\"%.1f\" height=\"16\" rx=\"3\" class=\"%s\"/>\n", y + 2, bar(i, middle[i]) > 2 ? bar(i, middle[i]) : 2,
			met[i] ? "y" : "n")
		if (bar(i, low[i]) != bar(i, high[i]))
			printf("<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" class=\"w\" stroke-width=\"1.5\"/>\n", 580 + bar(i, low[i]), y + 10,
				580 + bar(i, high[i]), y + 10)
		if (200 * load(i, middle[i]) > 290) printf("<text x=\"874\" y=\"%d\" class=\"t\">▸</text>\n", y + 15)
	}
	printf("<line x1=\"780\" y1=\"28\" x2=\"780\" y2=\"%d\" class=\"g\" stroke-width=\"1.5\" stroke-dasharray=\"4 3\"/>\n</svg>\n", height - 12)
}

function escaped(text) {
	gsub(/&/, "\\&amp;", text); gsub(/</, "\\&lt;", text); gsub(/>/, "\\&gt;", text); gsub(/'/, "\\&#39;", text)
	return text
}

# load is how much of its goal a figure takes: up to 1 it is met.
function load(i, v) { return op[i] != ">=" ? v / (limit[i] ? limit[i] : 1) : v ? limit[i] / v : 99 }

function bar(i, v) { return 200 * load(i, v) < 290 ? 200 * load(i, v) : 290 }
