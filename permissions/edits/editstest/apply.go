// Package editstest helps to test diffs.
package editstest

import (
	"fmt"
	"strconv"
	"strings"
)

// Apply applies the rows of a unified diff to a file by their numbers, as patch does.
func Apply(file string, rows []string) (string, error) {
	before := strings.SplitAfter(file, "\n")
	var out strings.Builder
	at := 0
	for i, row := range rows {
		text := row[1:] + "\n"
		if i+1 < len(rows) && strings.HasPrefix(rows[i+1], `\`) {
			text = row[1:]
		}
		switch row[0] {
		case '@':
			digits, _, _ := strings.Cut(strings.TrimPrefix(row, "@@ -"), " ")
			digits, count, found := strings.Cut(digits, ",")
			n, err := strconv.Atoi(digits)
			if err != nil {
				return "", fmt.Errorf("%q has no number", row)
			}
			if !found || count != "0" {
				n--
			}
			for ; at < n; at++ {
				out.WriteString(before[at])
			}
		case '+':
			out.WriteString(text)
		case ' ', '-':
			if at >= len(before) || before[at] != text {
				return "", fmt.Errorf("%q is not at row %d", row, at+1)
			}
			if at++; row[0] == ' ' {
				out.WriteString(text)
			}
		}
	}
	return out.String() + strings.Join(before[at:], ""), nil
}
