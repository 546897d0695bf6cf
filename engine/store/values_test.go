package store

import (
	"slices"
	"testing"

	"github.com/daycared/daycared/permissions"
)

// TestUsualListsAreShort: what most requests offer is stored as one character, an empty list of a brief column as nothing, and both are
// read as they were.
func TestUsualListsAreShort(t *testing.T) {
	once, no := permissions.Option{ID: "allow_once", Label: "Allow once"}, permissions.Option{ID: "deny", Label: "Deny"}
	minutes := permissions.Option{ID: "allow_15m", Label: "Allow for 15 minutes"}
	call := permissions.Option{ID: "allow_15m", Label: "Allow this exact call for 15 minutes"}
	for stored, offers := range map[string][]permissions.Option{
		"\x12": {once, minutes, no}, "\x13": {once, call, no}, "[\x0e,\x0f]": {once, no}, "[\x0f,\x11]": {no, call}, "[]": nil,
	} {
		v, err := offered{list[permissions.Option]{&offers}}.Value()
		if v != stored || err != nil {
			t.Errorf("%v is stored as %q, %v, want %q", offers, v, err, stored)
		}
		var back []permissions.Option
		if err := (offered{list[permissions.Option]{&back}}).Scan(v); err != nil || !slices.Equal(back, offers) {
			t.Errorf("%q is read as %v, %v, want %v", stored, back, err, offers)
		}
	}
	var names []string
	if v, err := (brief[string]{list[string]{&names}}).Value(); v != "" || err != nil {
		t.Errorf("no names are stored as %q, %v", v, err)
	}
	if names = []string{"x"}; (list[string]{&names}).Scan("") != nil || names != nil {
		t.Errorf("nothing is read as %v", names)
	}
}

// TestAPlainListIsWrittenAsEveryOther: with reflection or without, since seals cover it.
func TestAPlainListIsWrittenAsEveryOther(t *testing.T) {
	for _, texts := range [][]string{{"fay"}, {"fay", "", "<&> '\\u"}, {`"`}, {`\`}, {"\n"}, {"\x7f"}, {"é"}, {"\xff"}, {}, nil} {
		type other []string // is encoded with reflection
		got, err := encode(texts)
		if want, bad := encode(other(texts)); err != nil || bad != nil || got != want {
			t.Errorf("%q is written as %s, %v; want %s, %v", texts, got, err, want, bad)
		}
	}
	tags := []permissions.Tag{permissions.Network, permissions.Workspace}
	if got, err := encode(tags); err != nil || got != `["@network","@workspace"]` {
		t.Errorf("tags are written as %s, %v", got, err)
	}
}
