package store

import (
	"encoding/json"
	"errors"
	"maps"
	"testing"

	"github.com/daycared/daycared/permissions"
)

// TestRows: an invalid row is not used, whatever SQLite returns for it.
func TestRows(t *testing.T) {
	for column, value := range map[string]string{
		"deadline": "'x'", "digest": "'abc'", "scope": "'wide'", "tags": "'[\"@nework\"]'", "asked": "'fay'",
		"options": "7", "escalate_to": "'kim'", "reminders": "'[\"noon\"]'",
		"under": "'{}'", "calls": "zeroblob(2)", "revision": "'x'",
	} {
		t.Run(column, func(t *testing.T) {
			s := newStore(t)
			r := insert(t, s)
			if _, err := s.writer.ExecContext(t.Context(), "UPDATE requests SET "+column+" = "+value); err != nil {
				t.Fatal(err)
			}
			s.rows.dropAll() // as after a restart
			got, err := s.Read(t.Context(), r.ID)
			if !errors.Is(err, permissions.ErrBroken) || got.ID != "" {
				t.Errorf("read %v, %v", got, err)
			}
			if _, err := s.Apply(t.Context(), r.ID, fayAllows()); !errors.Is(err, permissions.ErrBroken) {
				t.Errorf("apply: %v", err)
			}
			insert(t, s) // the others work
		})
	}
}

// A column with a value of another type is an error, never an empty text.
func TestAColumnOfTheWrongSort(t *testing.T) {
	for _, v := range []any{int64(42), 1.5, nil, true, []byte("x")} {
		if text, err := textOf(v); err == nil {
			t.Errorf("%T is read as %q", v, text)
		}
	}
	if text, err := textOf("x"); err != nil || text != "x" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestDetailsAreReadAsJSONIs: the quick way reads what [json.Unmarshal] reads, or nothing.
func TestDetailsAreReadAsJSONIs(t *testing.T) {
	for text, quick := range map[string]bool{
		`{"a":"b"}`: true, `{"a":"b","c":""}`: true, `{"ü":"⛔"}`: true, `{"a":"b","a":"c"}`: true, `{"a":"b:c,{}"}`: true,
		`{"a":"\"b"}`: false, `{"a":"\u0062"}`: false, `{"a": "b"}`: false, `{"a":1}`: false, `{"a":"b",}`: false, `{"a":"b""c":"d"}`: false,
		`{"a","b":"c"}`: false, "{\"a\":\"\xff\"}": false, "{\"a\":\"\n\"}": false, `{}`: false, `"`: false, ``: false, `[["a":"b"]]`: false,
	} {
		got := plainObject(text)
		var want map[string]string
		if err := json.Unmarshal([]byte(text), &want); (got != nil) != quick || got != nil && (err != nil || !maps.Equal(got, want)) {
			t.Errorf("%q is read as %v, not as %v, %v", text, got, want, err)
		}
	}
}
