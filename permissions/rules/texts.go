package rules

import (
	"cmp"
	"encoding/json"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/daycared/daycared/permissions/acts"
)

// The texts in the input of a tool that is not known: servers call the members for files, folders and hosts what they like.

// inputText is a text in an input, and the member that has it.
type inputText struct{ member, text string }

// textsIn are the texts in an input, with the names of members and those of JSON in a text.
func textsIn(input json.RawMessage) (all []inputText) {
	var walk func(member string, v any)
	walk = func(member string, v any) {
		switch v := v.(type) {
		case string:
			all = append(all, inputText{member, v})
			var within any
			if strings.ContainsAny(v, "{[") && json.Unmarshal([]byte(v), &within) == nil {
				walk(member, within)
			}
		case float64:
			all = append(all, inputText{member, strconv.FormatFloat(v, 'f', -1, 64)})
		case []any:
			for _, of := range v {
				walk(member, of)
			}
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				all = append(all, inputText{member, name})
				walk(name, v[name])
			}
		}
	}
	var v any
	if json.Unmarshal(input, &v) == nil {
		walk("", v)
	}
	return all
}

// isGlob reports whether a text may be a pattern of names: neither prose nor an address.
func isGlob(text string) bool {
	return strings.ContainsAny(text, "*?[{") && !strings.ContainsAny(text, " \n") && !strings.Contains(text, "://")
}

// mayName reports whether the member's name says that it is for one of these.
func (t inputText) mayName(what string) bool {
	return slices.ContainsFunc(strings.Fields(what), func(part string) bool { return strings.Contains(strings.ToLower(t.member), part) })
}

// folder returns the folder that a text may name for a search, or from which the other texts are read; empty: none.
func (t inputText) folder() string {
	name := acts.PathOf(t.text)
	switch glob := strings.IndexAny(name, "*?[{"); {
	case strings.Contains(name, "://"):
	case isGlob(name):
		return cmp.Or(path.Dir(name[:glob]+"x"), ".")
	case name == "." || name == ".." || filepath.IsAbs(name) || t.mayName("path dir folder root cwd file uri location glob"):
		if strings.LastIndex(path.Base(name), ".") <= 0 || strings.Trim(path.Base(name), ".") == "" { // else its name is that of a file
			return name
		}
	}
	return ""
}

const (
	// maxTexts and maxFolders are the most texts of an input, and the most of them that may be folders, that are looked at.
	maxTexts, maxFolders = 400, 8
	// longestName is the most bytes of a name.
	longestName = 4096
)

// texts adds what the texts in the input of a tool may name, if there are rules that restrict that.
func (j *judge) texts() {
	if !j.restrictsHosts() && !j.restrictsFiles() {
		return
	}
	all := slices.DeleteFunc(textsIn(j.Input), func(t inputText) bool {
		return t.text == "" || len(t.text) > longestName || strings.Contains(t.text, "\n") ||
			strings.Contains(t.text, " ") && !t.mayName("path dir folder file")
	})
	in := []string{cmp.Or(j.Folder, acts.Computed)}
	for _, t := range all {
		if folder := t.folder(); folder != "" {
			j.items = append(j.items, item{kind: reads, act: &acts.Act{In: in[:1]}, name: folder, search: true, may: true})
			in = append(in, acts.Under(in[0], folder))
		}
	}
	slices.Sort(in[1:])
	if in = slices.Compact(in); len(all) > maxTexts || len(in) > maxFolders {
		j.doubt("its input has more texts than are looked at")
		return
	}
	for _, t := range all {
		j.items = append(j.items, item{kind: writes, act: &acts.Act{In: in}, name: acts.PathOf(t.text), may: true})
		host, address := addressOf(t.text)
		switch address = address && acts.PathOf(t.text) == t.text; {
		case address && host == "" && j.restrictsHosts():
			j.doubt("it reaches an address that programs may read in different ways")
		case address:
			j.items = append(j.items, item{kind: fetches, act: &acts.Act{}, name: host, hidden: true})
		case t.mayName("host domain server endpoint address url uri origin site"):
			j.items = append(j.items, item{kind: fetches, act: &acts.Act{}, name: acts.HostOf("http://" + t.text), may: true})
		}
	}
}

// restricted returns the deny or ask rule that what may be done falls under; 0: none.
func (j *judge) restricted(i item) int {
	for _, e := range []Effect{Deny, Ask} {
		if p := j.caught(i, e); p != nil {
			return p.rule.n
		}
	}
	return j.searched(i)
}
