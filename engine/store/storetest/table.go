package storetest

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// Table runs a query on the database at path, as people do, with a line per row and " | " between columns. It is
// read-only, and the store may be open.
func Table(ctx context.Context, path, query string) (text string, err error) {
	db, err := sql.Open("sqlite3", "file:"+path+"?mode=ro&_query_only=1")
	if err != nil {
		return "", err
	}
	defer func() { _ = db.Close() }()
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return "", err
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return "", err
		}
		for i, v := range values {
			if i > 0 {
				b.WriteString(" | ")
			}
			if raw, ok := v.([]byte); ok {
				v = string(raw)
			}
			fmt.Fprint(&b, v)
		}
		b.WriteString("\n")
	}
	return b.String(), rows.Err()
}
