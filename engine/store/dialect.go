package store

import (
	"database/sql/driver"
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"unicode/utf8"
)

// gateTypes are the types of the index audit_gates.
var gateTypes = []string{
	"REQUEST_SETTLED", "REQUEST_USED", "REQUEST_VOIDED", "GRANT_ADDED", "GRANT_REVOKED", "GRANT_ENDED", "GRANT_REINSTATED", "TOKEN_CREATED",
	"TOKEN_REVOKED", "TOKEN_REINSTATED", "PAIRED", "UNPAIRED", "PAIRING_REINSTATED", "ACCOUNT_SUSPENDED", "PERSON_LOCKED", "PERSON_UNLOCKED",
	"UNLOCK_ASKED", "ALL_STOPPED", "ALL_RESUMED", "STORE_RESTORED", "AGENT_STOPPED", "AGENT_MUTED", "AGENT_RESUMED",
}

// onServer are the parts of statements that SQLite alone understands, each followed by what PostgreSQL has instead.
var onServer = strings.NewReplacer(
	readLife, `SELECT opens, CASE WHEN marked THEN 1 ELSE 0 END, answered, restored_at, numbers_above, 0 FROM meta`,
	countSealed, `SELECT 1`, countPersons, `SELECT 1`, countAway, `SELECT 1`, countProposals, `SELECT 1`, countLocks, `SELECT 1`,
	countKeys, `SELECT 1`, countNumbered, `SELECT 1`, readTypes, `SELECT 0::bigint, '' WHERE FALSE`, `MAX($2, 0)`, `GREATEST($2::bigint, 0)`,
	countColumn, `SELECT 1 WHERE $1::text <> ''`, strayRows, ``,
	markOriginal, `SELECT 1`,
	gateEntry, `audit.type IN ('`+strings.Join(gateTypes, `', '`)+`')`,
	sessionEntry, `entries.type IN ('SESSION_STATUS', 'SESSION_ENDED', 'TOOL_STARTED', 'TOOL_FINISHED')`,
	// OFFSET has the entries of one request looked up by the index; without it, those of all requests may be read first.
	`audit.type IN `+usedTypes, `audit.type IN ('REQUEST_USED', 'REQUEST_VOIDED') OFFSET 0`,
	`audit.type = `+settledType, `audit.type = 'REQUEST_SETTLED' OFFSET 0`,
	`audit.type = `+resumedType, `audit.type = 'AGENT_RESUMED'`,
	`audit.request IN (+requests.number, requests.id)`, `audit.request = requests.id`,
	`number IN (SELECT value FROM json_each(`, `number IN (SELECT value::bigint FROM json_each(`,
	readVotesOf, numbersOf(readVotesOf), deleteUses, numbersOf(deleteUses),
	deleteVotesOf, numbersOf(deleteVotesOf), deleteCopies, numbersOf(deleteCopies),
	`json_array('', `, `json_build_array(''::text, `, `, ''), `+ownColumns, `, ''::text)::text, `+ownColumns,
	`CROSS JOIN audit ON`, `AS gates JOIN audit ON`, `SELECT +request FROM`, `SELECT request FROM`,
	`UNION ALL SELECT +number FROM grants JOIN requests ON requests.id = request WHERE revoked_at = 0 AND ended_at = 0`, ``,
	`LIMIT 0 + $`, `LIMIT $`, `OFFSET 0 + $`, `OFFSET $`, // as it stands, a number of four bytes
	hasWords, `TRUE`,
	`x''`, `''::bytea`,
	`WHERE now <> excluded.now`, `WHERE moved.now <> excluded.now`,
)

// numbersOf is a statement whose list is of numbers.
func numbersOf(text string) string {
	return strings.Replace(text, "SELECT value ", "SELECT value::bigint ", 1)
}

// texts are the statements by the text that SQLite has.
var texts sync.Map

// A NULL for a key is an error of its own, where SQLite would make up a number.
func init() {
	for _, text := range addEntries[1:] {
		texts.Store(text, strings.ReplaceAll(text, ", '')", ", NULL)"))
	}
}

func onPostgres(text string) string {
	if known, ok := texts.Load(text); ok {
		return known.(string) //nolint:errcheck,forcetypeassert // nothing else is stored
	}
	out := onServer.Replace(text)
	texts.Store(text, out)
	return out
}

// serverRows are rows whose texts are as they were before [escapeText].
type serverRows struct{ driver.Rows }

func (r serverRows) Next(into []driver.Value) error {
	err := r.Rows.Next(into)
	for i, v := range into {
		if text, ok := v.(string); ok && strings.Contains(text, escape) {
			into[i] = unescapeText(text)
		}
	}
	return err
}

// escape begins what stands in a text for a byte that PostgreSQL refuses there, NUL or no UTF-8, and for itself: with its two hexadecimal
// digits.
const escape = "\x1a"

func escapeArgs(args []driver.NamedValue) []driver.NamedValue {
	for i, a := range args {
		v := reflect.ValueOf(a.Value)
		if v.Kind() == reflect.String {
			args[i].Value = escapeText(v.String())
		}
	}
	return args
}

func escapeValues(values []any) []any {
	out := make([]any, len(values))
	for i, v := range values {
		if text, is := v.(string); is {
			v = escapeText(text)
		}
		out[i] = v
	}
	return out
}

func escapeText(text string) string {
	if utf8.ValidString(text) && !strings.ContainsAny(text, "\x00"+escape) {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		switch _, size := utf8.DecodeRuneInString(text[i:]); {
		case r == utf8.RuneError && size == 1, r == 0, text[i:i+1] == escape:
			fmt.Fprintf(&b, escape+"%02x", text[i])
		default:
			b.WriteString(text[i : i+size])
		}
	}
	return b.String()
}

func unescapeText(text string) string {
	parts := strings.Split(text, escape)
	for i := 1; i < len(parts); i++ {
		if b, err := hex.DecodeString(parts[i][:min(2, len(parts[i]))]); err == nil && len(b) == 1 {
			parts[i] = string(b) + parts[i][2:]
		} else { // another program wrote it
			parts[i] = escape + parts[i]
		}
	}
	return strings.Join(parts, "")
}
