package permissions

import (
	"encoding/json"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/daycared/daycared/permissions/i18n"
)

// anyPath draws a clean absolute path of few short segments, so that paths often hold each other.
func anyPath() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		segment := rapid.SampledFrom([]string{"a", "b", "ab", "a_evil", "a b", "…", "*", ".a", "a.", "é"})
		return "/" + strings.Join(rapid.SliceOfN(segment, 0, 4).Draw(t, "segments"), "/")
	})
}

func anyTag() *rapid.Generator[Tag] {
	return rapid.Custom(func(t *rapid.T) Tag {
		word := rapid.SampledFrom([]string{"@network", "@workspace", "@events", "@read:", "@write:"}).Draw(t, "word")
		if strings.HasSuffix(word, ":") {
			word += anyPath().Draw(t, "path")
		}
		return must(ParseTag(word))
	})
}

func TestTagRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tag := anyTag().Draw(t, "tag")
		again, err := ParseTag(" " + tag.String() + "\n")
		if err != nil || again != tag {
			t.Fatalf("%v came back as %v, %v", tag, again, err)
		}
		text, err := json.Marshal([]Tag{tag})
		if err != nil {
			t.Fatal(err)
		}
		var list []Tag
		if err := json.Unmarshal(text, &list); err != nil || !slices.Equal(list, []Tag{tag}) {
			t.Fatalf("%s came back as %v, %v", text, list, err)
		}
	})
}

func TestTagFromBadText(t *testing.T) {
	tag := Network
	if err := tag.UnmarshalText([]byte("@nework")); err == nil || tag != (Tag{}) {
		t.Errorf("an unknown word left %v, %v", tag, err)
	}
}

// A path tag covers another exactly when the way from one path to the other never goes up.
func TestCoversIsNoUpInTheRelativePath(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		outer, inner := anyPath().Draw(t, "outer"), anyPath().Draw(t, "inner")
		rel, err := filepath.Rel(outer, inner)
		if err != nil {
			t.Fatal(err)
		}
		up := slices.Contains(strings.Split(rel, "/"), "..")
		for _, verbs := range []struct {
			held, asked string
			may         bool
		}{
			{"@read:", "@read:", true}, {"@write:", "@write:", true},
			{"@write:", "@read:", true}, {"@read:", "@write:", false},
		} {
			held, asked := must(ParseTag(verbs.held+outer)), must(ParseTag(verbs.asked+inner))
			if got, want := held.Covers(asked), verbs.may && !up; got != want {
				t.Errorf("%s covers %s: %v, want %v", held, asked, got, want)
			}
		}
	})
}

func TestCoversOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := anyTag().Draw(t, "a"), anyTag().Draw(t, "b"), anyTag().Draw(t, "c")
		if !a.Covers(a) {
			t.Errorf("%s does not cover itself", a)
		}
		if a != b && a.Covers(b) && b.Covers(a) {
			t.Errorf("%s and %s cover each other", a, b)
		}
		if a.Covers(b) && b.Covers(c) && !a.Covers(c) {
			t.Errorf("%s covers %s covers %s, but not the last", a, b, c)
		}
		if a.Covers(c) && b.Covers(c) && !a.overlaps(b) {
			t.Errorf("%s and %s both cover %s and do not overlap", a, b, c)
		}
		if a.overlaps(b) != b.overlaps(a) {
			t.Errorf("only one of %s and %s overlaps the other", a, b)
		}
	})
}

func TestCoversWords(t *testing.T) {
	words := []Tag{Network, Workspace, Events, must(ParseTag("@read:/")), must(ParseTag("@write:/"))}
	for _, held := range append(words, Tag{}) {
		for _, asked := range append(words, Tag{}) {
			want := held != (Tag{}) && (held == asked || (held == words[4] && asked == words[3]))
			if got := held.Covers(asked); got != want {
				t.Errorf("%q covers %q: %v, want %v", held, asked, got, want)
			}
		}
	}
}

func TestTagTouches(t *testing.T) {
	for _, c := range []struct {
		tag, path string
		want      bool
	}{
		{"@read:/srv/a", "/srv/a", true},
		{"@read:/srv/a", "/srv/a/b", true},
		{"@write:/srv/a/b", "/srv/a", true},
		{"@read:/", "/srv", true},
		{"@read:/srv", "/", true},
		{"@read:/srv/a", "/srv/a_evil", false},
		{"@read:/srv/a", "/srv/b", false},
		{"@network", "/srv", false},
		{"@workspace", "/", false},
	} {
		t.Run("C1/"+c.tag+" and "+c.path, func(t *testing.T) {
			if got := must(ParseTag(c.tag)).Touches(c.path); got != c.want {
				t.Errorf("%s touches %s: %v, want %v", c.tag, c.path, got, c.want)
			}
		})
	}
}

func TestDescribe(t *testing.T) {
	list := tags("@network", "@events", "@workspace", "@read:/p", "@write:/p")
	want := "network access, events access, workspace write access, read access to /p, write access to /p"
	if got := DescribeTags(list); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := (Tag{}).Describe(i18n.English); got != "nothing" {
		t.Errorf("the zero tag is %q", got)
	}
	if got := DescribeTags(nil); got != "" {
		t.Errorf("no tags are %q", got)
	}
}

func TestParseTagsKeepsOrderAndDropsRepetitions(t *testing.T) {
	got := tags("@write:/b", " @network", "@write:/b ", "@read:/a", "@network")
	if want := []Tag{must(ParseTag("@write:/b")), Network, must(ParseTag("@read:/a"))}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if list, err := ParseTags([]string{"@network", "@nope"}); err == nil || list != nil {
		t.Errorf("one bad tag among good ones: %v, %v", list, err)
	}
}

func TestMissing(t *testing.T) {
	for _, c := range []struct{ wanted, held, missing []string }{
		{[]string{"@network", "@read:/a/b", "@write:/a"}, []string{"@read:/a"}, []string{"@network", "@write:/a"}},
		{[]string{"@write:/b", "@read:/a"}, nil, []string{"@write:/b", "@read:/a"}},
		{[]string{"@read:/a", "@network"}, []string{"@write:/", "@network"}, nil},
		{nil, []string{"@network"}, nil},
	} {
		if got := Missing(tags(c.wanted...), tags(c.held...)); !slices.Equal(got, tags(c.missing...)) {
			t.Errorf("of %v with %v held: missing %v, want %v", c.wanted, c.held, got, c.missing)
		}
	}
}

func FuzzParseTag(f *testing.F) {
	for _, text := range []string{
		"@network", " @workspace\n", "@events", "@read:/", "@write:/srv/www", "@read:/srv/../etc", "@read://x",
		"@write:/a\x00b", "@read:~", "@read:/e\u0301", "@read:/a/", "@nework", "*", "@read:/*", "", ":",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tag, err := ParseTag(text)
		if err != nil {
			if tag != (Tag{}) {
				t.Fatalf("refused, and yet %v", tag)
			}
			return
		}
		if tag.String() != strings.TrimSpace(text) {
			t.Fatalf("%q was repaired to %q", text, tag)
		}
		if again, err := ParseTag(tag.String()); err != nil || again != tag {
			t.Fatalf("%v came back as %v, %v", tag, again, err)
		}
		if p := tag.Path(); p != "" && (path.Clean(p) != p || !path.IsAbs(p) || strings.ContainsRune(p, 0)) {
			t.Fatalf("path %q", p)
		}
	})
}

func TestThePathOfATag(t *testing.T) {
	for text, want := range map[string]string{"@write:/srv/www": "/srv/www", "@read:/": "/", "@network": ""} {
		if got := must(ParseTag(text)).Path(); got != want {
			t.Errorf("%s names %q", text, got)
		}
	}
}

func TestATagReachesAPartOfWhatAnotherDoes(t *testing.T) {
	for _, c := range []struct {
		tag, other string
		want       bool
	}{
		{"@read:/srv/www", "@read:/srv", true},
		{"@read:/srv", "@write:/srv/www", true},
		{"@read:/srv", "@write:/opt", false},
		{"@write:/srv", "@read:/srv/www", false},
		{"@network", "@network", true},
		{"@network", "@write:/srv", false},
		{"@read:/srv", "@network", false},
	} {
		one, failed := ParseTags([]string{c.tag})
		other, err := ParseTags([]string{c.other})
		if failed != nil || err != nil {
			t.Fatal(failed, err)
		}
		if got := one[0].Reaches(other[0]); got != c.want {
			t.Errorf("%s reaches what %s does: %t", c.tag, c.other, got)
		}
	}
}
