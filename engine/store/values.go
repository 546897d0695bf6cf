package store

import (
	"bytes"
	"cmp"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/daycared/daycared/permissions"
)

// The types below convert between a field and its column: each is both the bound value and the destination of a scan.

// driverArgs converts args as database/sql would, before the connection is taken.
func driverArgs(args []any) ([]any, error) {
	values := make([]any, len(args))
	for i, a := range args {
		v, err := driverValue(a)
		if err != nil {
			return nil, err
		}
		values[i] = v
	}
	return values, nil
}

// driverValue converts as [driver.DefaultParameterConverter] does, with less reflection for what rows have.
func driverValue(a any) (driver.Value, error) {
	switch a := a.(type) {
	case nil, string, int64, bool, []byte:
		return a, nil
	case driver.Valuer:
		return a.Value()
	}
	v := reflect.ValueOf(a)
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() == reflect.String {
		return v.String(), nil
	}
	return driver.DefaultParameterConverter.ConvertValue(a)
}

// never is the end of what has none, so that one comparison finds what is in force.
const never = math.MaxInt64

// exactFields returns scan destinations that accept only values of their column's type: SQLite stores any type anywhere,
// and text stored as bytes reads the same but equals nothing in SQL.
func exactFields(fields []any) []any {
	all := make([]any, len(fields))
	for i, f := range fields {
		switch all[i] = f; f.(type) {
		case sql.Scanner, *[]byte, **int, *any:
		default:
			all[i] = exact{f}
		}
	}
	return all
}

// exact wraps a pointer to a string, an integer or a bool.
type exact struct{ field any }

// Scan sets the field to text of another type as well, so that the error can name the row.
func (c exact) Scan(v any) error {
	switch field := c.field.(type) { // the usual ones, without reflection
	case *string:
		if text, ok := v.(string); ok {
			*field = text
			return nil
		}
	case *int64:
		if n, ok := v.(int64); ok {
			*field = n
			return nil
		}
	}
	field := reflect.ValueOf(c.field).Elem()
	kind := field.Kind()
	switch v := v.(type) {
	case string:
		if kind == reflect.String {
			field.SetString(v)
			return nil
		}
	case []byte:
		if kind == reflect.String {
			field.SetString(string(v))
		}
	case int64:
		if field.CanInt() && !field.OverflowInt(v) {
			field.SetInt(v)
			return nil
		}
	case bool:
		if kind == reflect.Bool {
			field.SetBool(v)
			return nil
		}
	}
	return fmt.Errorf("%s was expected, not %v of %T", kind, v, v)
}

// instant is a time in microseconds, 0 for the zero time.
type instant struct{ time *time.Time }

func (c instant) Value() (driver.Value, error) { return micros(*c.time), nil }

func (c instant) Scan(v any) error {
	n, ok := v.(int64)
	if !ok || !inYears(n) {
		return fmt.Errorf("a time is an integer of the years 1 to 9999, not %v of %T", v, v)
	}
	*c.time = moment(n)
	return nil
}

// lenientTime is a time that nothing depends on: an unreadable one is zero.
type lenientTime struct{ time *time.Time }

func (c lenientTime) Value() (driver.Value, error) { return instant(c).Value() }

func (c lenientTime) Scan(v any) error {
	if instant(c).Scan(v) != nil {
		*c.time = time.Time{}
	}
	return nil
}

// inYears reports whether n is a time that RFC 3339 can represent.
func inYears(n int64) bool {
	const first, last = -62_135_596_800_000_000, 253_402_300_799_999_999
	return n >= first && n <= last
}

func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func moment(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}

// endTime is the time at which something ends; the zero time, never, sorts last.
type endTime struct{ time *time.Time }

func (c endTime) Value() (driver.Value, error) {
	if c.time.IsZero() {
		return int64(never), nil
	}
	return c.time.UnixMicro(), nil
}

func (c endTime) Scan(v any) error {
	if v == int64(never) {
		*c.time = time.Time{}
		return nil
	}
	return instant(c).Scan(v)
}

// times is a JSON array of times in microseconds; an empty one is read as nil.
type times struct{ times *[]time.Time }

func (c times) Value() (driver.Value, error) {
	all := make([]int64, len(*c.times))
	for i, t := range *c.times {
		all[i] = micros(t)
	}
	return brief[int64]{list[int64]{&all}}.Value()
}

func (c times) Scan(v any) error {
	var all []int64
	err := list[int64]{&all}.Scan(v)
	*c.times = nil
	for _, n := range all {
		if !inYears(n) {
			return fmt.Errorf("%d is no time of the years 1 to 9999", n)
		}
		*c.times = append(*c.times, moment(n))
	}
	return err
}

type digest struct{ digest *permissions.Digest }

func (c digest) Value() (driver.Value, error) { return c.digest[:], nil }

func (c digest) Scan(v any) error {
	b, ok := v.([]byte)
	if !ok || len(b) != len(c.digest) {
		return fmt.Errorf("a digest is %d bytes, not %d of %T", len(c.digest), len(b), v)
	}
	*c.digest = permissions.Digest(b)
	return nil
}

// scope is a scope as text, empty for none.
type scope struct{ scope *permissions.Scope }

func (c scope) Value() (driver.Value, error) { return c.scope.String(), nil }

func (c scope) Scan(v any) (err error) {
	text, err := textOf(v)
	if err != nil {
		return err
	}
	if text == "" {
		*c.scope = permissions.Scope{}
		return nil
	}
	*c.scope, err = permissions.ParseScope(text)
	return err
}

// rawJSON is JSON that is kept byte for byte.
type rawJSON struct{ json *json.RawMessage }

func (c rawJSON) Value() (driver.Value, error) { return string(*c.json), nil }

func (c rawJSON) Scan(v any) error {
	text, err := textOf(v)
	if err != nil {
		return err
	}
	*c.json = nil
	if text != "" {
		*c.json = json.RawMessage(text)
	}
	return nil
}

// canonical is [rawJSON] that is used in answers unchanged.
type canonical struct{ rawJSON }

func (c canonical) Scan(v any) error {
	if err := c.rawJSON.Scan(v); err != nil || *c.json == nil {
		return err
	}
	return permissions.Answerable(string(*c.json), 100)
}

// list is a JSON array; an empty one, or nothing, is read as nil.
type list[T any] struct{ items *[]T }

const emptyList = "[]"

func (c list[T]) Value() (driver.Value, error) {
	if len(*c.items) == 0 {
		return emptyList, nil
	}
	return encode(*c.items)
}

func (c list[T]) Scan(v any) error {
	text, err := textOf(v)
	if err != nil {
		return err
	}
	*c.items = nil
	if text == emptyList || text == "" {
		return nil
	}
	return cmp.Or(permissions.Answerable(text, 100), json.Unmarshal([]byte(text), c.items))
}

// Options that most requests offer.
const (
	allowOnce    = `{"id":"allow_once","label":"Allow once"}`
	allowMinutes = `{"id":"allow_15m","label":"Allow for 15 minutes"}`
	allowCall    = `{"id":"allow_15m","label":"Allow this exact call for 15 minutes"}`
	deny         = `{"id":"deny","label":"Deny"}`
)

// short are the characters that stand for texts which rows have often, and these texts. JSON has no such character as it is. Those
// below 8 are in the view audit, and 1 is the digest of an entry's request.
var short = []string{
	"\x02", `"kind":"permission"`, "\x03", `"kind":"tool"`, "\x04", `"state":"approved"`, "\x05", `"state":"denied"`,
	"\x06", `"answer":"allow_once"`, "\x07", `"answer":"deny"`,
	"\x12", `[` + allowOnce + `,` + allowMinutes + `,` + deny + `]`, "\x13", `[` + allowOnce + `,` + allowCall + `,` + deny + `]`,
	"\x0e", allowOnce, "\x0f", deny, "\x10", allowMinutes, "\x11", allowCall,
}

var lengthen, shorten = strings.NewReplacer(short...), func() *strings.Replacer {
	pairs := slices.Clone(short)
	slices.Reverse(pairs)
	return strings.NewReplacer(pairs...)
}()

// offered is the list of the options of a request, of which the usual ones are stored as a character each.
type offered struct{ list[permissions.Option] }

func (c offered) Value() (driver.Value, error) {
	v, err := c.list.Value()
	if text, ok := v.(string); ok {
		v = shorten.Replace(text)
	}
	return v, err
}

func (c offered) Scan(v any) error {
	if text, ok := v.(string); ok {
		v = lengthen.Replace(text)
	}
	return c.list.Scan(v)
}

// brief is a list of which an empty one, as most are, is stored as nothing. A seal covers the list.
type brief[T any] struct{ list[T] }

func (c brief[T]) Value() (driver.Value, error) {
	if len(*c.items) == 0 {
		return "", nil
	}
	return c.list.Value()
}

// detail is the JSON object of an audit record.
type detail struct{ fields *map[string]string }

const emptyDetail = "{}"

func (c detail) Value() (driver.Value, error) {
	if len(*c.fields) == 0 {
		return emptyDetail, nil
	}
	text, err := encode(*c.fields)
	return shorten.Replace(text), err
}

func (c detail) Scan(v any) error {
	text, err := textOf(v)
	if err != nil {
		return err
	}
	*c.fields = nil
	if text = lengthen.Replace(text); text == emptyDetail {
		return nil
	}
	if plain := plainObject(text); plain != nil {
		*c.fields = plain
		return nil
	}
	return json.Unmarshal([]byte(text), c.fields)
}

// plainObject reads a JSON object of strings without escapes and spaces, as most details are, many times faster than
// [json.Unmarshal]. It is nil if text is anything else.
func plainObject(text string) map[string]string {
	parts := strings.Split(text, `"`)
	if len(parts)%4 != 1 || parts[0] != "{" || parts[len(parts)-1] != "}" || strings.ContainsFunc(text, escapes) {
		return nil
	}
	all := make(map[string]string, len(parts)/4)
	for i := 1; i < len(parts); i += 4 {
		if parts[i+1] != ":" || i > 1 && parts[i-1] != "," {
			return nil
		}
		all[parts[i]] = parts[i+2]
	}
	return all
}

// mapOf is a map of names and values that follow each other.
func mapOf(all []string) map[string]string {
	if len(all) == 0 {
		return nil
	}
	m := make(map[string]string, len(all)/2)
	for i := 0; i < len(all); i += 2 {
		m[all[i]] = all[i+1]
	}
	return m
}

// escapes reports whether a character needs an escape in JSON, or is one that [json.Unmarshal] replaces.
func escapes(r rune) bool { return r == '\\' || r < ' ' || r == utf8.RuneError }

// encode writes JSON without HTML escaping: inputs must come back byte for byte.
func encode(v any) (string, error) {
	switch v := v.(type) {
	case []string:
		if text := encodePlain(v, func(s string) string { return s }); text != "" {
			return text, nil
		}
	case []permissions.Tag:
		if text := encodePlain(v, permissions.Tag.String); text != "" {
			return text, nil
		}
	}
	var b bytes.Buffer
	w := json.NewEncoder(&b)
	w.SetEscapeHTML(false)
	if err := w.Encode(v); err != nil {
		return "", err
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}

// encodePlain is [encode] without reflection of a list of texts that need no escape; empty if one does, or there is none.
func encodePlain[T any](items []T, text func(T) string) string {
	var b []byte
	for _, item := range items {
		s := text(item)
		for i := range len(s) {
			if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
				return ""
			}
		}
		b = append(append(append(b, `,"`...), s...), '"')
	}
	if len(b) == 0 {
		return ""
	}
	b[0] = '['
	return string(append(b, ']'))
}

func textOf(v any) (string, error) {
	if text, ok := v.(string); ok {
		return text, nil
	}
	return "", fmt.Errorf("text was expected, not %T", v)
}

// An entry's key is the number of its chain, times 2^48, and its seq.
const (
	// lowestKey and highestKey bound the keys of the chain that the first parameter names.
	lowestKey  = `(SELECT number FROM chains WHERE name = $1) << 48`
	highestKey = lowestKey + ` | 281474976710655`

	inChain = `key BETWEEN ` + lowestKey + ` AND ` + highestKey
)
