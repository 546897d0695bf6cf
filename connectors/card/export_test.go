package card

import (
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
)

// Summary is the summary of a request in plain text.
func Summary(r permissions.Request) []string {
	rows := summary(r, i18n.English)
	for i, row := range rows {
		rows[i] = Plain(row)
	}
	return rows
}
