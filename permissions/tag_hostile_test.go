package permissions

import (
	"fmt"
	"strings"
	"testing"
)

// Tags are refused rather than repaired, and the refusal says what would be right.
func TestHostileTags(t *testing.T) {
	longest := "/" + strings.Repeat("x", MaxTagPath-1)
	for _, c := range []struct{ name, text, says string }{
		{"near word", "@nework", "did you mean @network?"},
		{"near word, workspace", "@workspce", "did you mean @workspace?"},
		{"near word, events", "@event", "did you mean @events?"},
		{"near word with a path", "@wirte:/srv", "did you mean @write:/absolute/path?"},
		{"word that needs a path", "@read", "did you mean @read:/absolute/path?"},
		{"word that takes no path", "@network:/srv", "did you mean @network?"},
		{"no at sign", "network", "did you mean @network?"},
		{"other case", "@Network", "did you mean @network?"},
		{"other case of a verb", "@READ:/srv", "unknown permission"},
		{"empty", "", "unknown permission"},
		{"only space", " \t\n", "unknown permission"},
		{"a colon", ":", "unknown permission"},
		{"two tags in one", "@network @workspace", "unknown permission"},
		{"two tags with a comma", "@network,@workspace", "unknown permission"},
		{"admin", "@admin", "unknown permission"},
		{"wildcard for everything", "*", "unknown permission"},
		{"wildcard word", "@*", "unknown permission"},
		{"wildcard path", "@read:*", "not absolute"},
		{"wildcard word with a path", "@*:/srv", "unknown permission"},

		{"empty path to read", "@read:", "write it as @read:/absolute/path"},
		{"empty path to write", "@write:", "write it as @write:/absolute/path"},
		{"relative", "@read:srv/a", "not absolute"},
		{"dot", "@read:.", "not absolute"},
		{"home", "@write:~", "not absolute"},
		{"home of", "@write:~root/.ssh", "not absolute"},
		{"variable", "@read:$HOME/x", "not absolute"},
		{"braces", "@read:${HOME}", "not absolute"},
		{"windows drive", `@read:C:\Users`, "not absolute"},
		{"space before the path", "@read: /srv", "not absolute"},
		{"file url", "@read:file:///etc", "not absolute"},
		{"parent", "@read:/srv/../etc", "write it as /etc"},
		{"parent at the end", "@read:/srv/a/..", "write it as /srv"},
		{"parent of the root", "@write:/..", "write it as /"},
		{"dot segment", "@read:/srv/./a", "write it as /srv/a"},
		{"two slashes", "@read:/srv//a", "write it as /srv/a"},
		{"two slashes first", "@read://srv", "write it as /srv"},
		{"slash at the end", "@read:/srv/", "write it as /srv"},
		{"NUL", "@read:/srv\x00/etc", "control character"},
		{"NUL at the end", "@read:/srv\x00", "control character"},
		{"newline", "@read:/srv\n@network", "control character"},
		{"carriage return", "@read:/srv\r/a", "control character"},
		{"tab", "@read:/s\trv", "control character"},
		{"escape", "@read:/\x1b[2Jsrv", "control character"},
		{"delete", "@read:/srv\x7f/a", "control character"},
		{"C1 control", "@read:/srv\u0085/a", "control character"},
		{"bad UTF-8", "@read:/srv/\xff", "not valid UTF-8"},
		{"overlong slash", "@read:/srv\xc0\xafetc", "not valid UTF-8"},
		{"surrogate", "@read:/\xed\xa0\x80", "not valid UTF-8"},
		{"decomposed", "@read:/caf\u0065\u0301", `write it as "/café"`},
		{"compatibility form that NFC changes", "@read:/\u212b", "normal form C"},
		{"Hangul in parts", "@read:/\u1112\u1161", "normal form C"},
		{"4097 bytes", "@read:" + longest + "x", "4097 bytes long, more than 4096"},
	} {
		t.Run("C3/"+c.name, func(t *testing.T) {
			tag, err := ParseTag(c.text)
			if err == nil || tag != (Tag{}) {
				t.Fatalf("taken as %v", tag)
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("says %q, not %q", err, c.says)
			}
		})
	}
}

func TestOddTagsThatAreRight(t *testing.T) {
	for _, text := range []string{
		"@read:/", "@read:/" + strings.Repeat("x", MaxTagPath-1), "@write:/srv/a:b", "@read:/srv/caf\u00e9",
		"@read:/srv/...", "@read:/srv/..a", "@read:/srv/a.", "@read:/srv/a b", "@read:/~", "@read:/$HOME", "@read:/srv/[id]",
	} {
		t.Run(fmt.Sprintf("C3/%.40s", text), func(t *testing.T) {
			if tag, err := ParseTag(text); err != nil || tag.String() != text {
				t.Errorf("%.40q: %v, %v", text, tag, err)
			}
		})
	}
}

// What a tag does not cover, however alike the two look.
func TestHostileCovers(t *testing.T) {
	for _, c := range []struct{ name, held, asked string }{
		{"prefix", "@read:/srv/a", "@read:/srv/a_evil"},
		{"prefix with a dot", "@read:/srv/a", "@read:/srv/a.bak"},
		{"prefix with a space", "@read:/srv/a", "@read:/srv/a b"},
		{"prefix of the last letter", "@write:/srv/ab", "@write:/srv/a"},
		{"prefix of a file below", "@read:/srv/a", "@read:/srv/a_evil/a"},
		{"prefix at the root", "@read:/s", "@read:/srv"},
		{"parent", "@read:/srv/a", "@read:/srv"},
		{"root", "@read:/srv", "@read:/"},
		{"sibling", "@read:/srv/a", "@read:/srv/b"},
		{"other case", "@read:/srv/A", "@read:/srv/a"},
		{"dots as a name", "@read:/srv/a", "@read:/srv/..a"},
		{"star is a name", "@read:/srv/*", "@read:/srv/a"},
		{"star at the root is a name", "@read:/*", "@read:/srv"},
		{"question mark is a name", "@read:/srv/?", "@read:/srv/a"},
		{"tilde is a name", "@read:/~", "@read:/root"},
		{"variable is a name", "@read:/$HOME", "@read:/root"},
		{"read is not write", "@read:/srv", "@write:/srv/a"},
		{"look-alike letter", "@read:/srv/a", "@read:/srv/\u0430"},
		{"network is no path", "@network", "@read:/srv"},
		{"workspace is no path", "@workspace", "@write:/srv"},
		{"everything is not the network", "@write:/", "@network"},
		{"everything is not the events", "@write:/", "@events"},
		{"events decide nothing", "@events", "@workspace"},
	} {
		t.Run("C1/"+c.name, func(t *testing.T) {
			if held, asked := must(ParseTag(c.held)), must(ParseTag(c.asked)); held.Covers(asked) {
				t.Errorf("%s covers %s", held, asked)
			}
		})
	}
}
