package config

import (
	"reflect"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// section is a mapping of keys: the whole file, a part of it, or one item of a list of people or routes.
type section struct {
	path  string // of the keys above, without the numbers of items
	keys  []key
	later []string // names that a later version brings
}

// key is one key, as its struct field says.
type key struct {
	name  string
	path  string       // with the names of the sections it stands in
	field int          // in its struct
	typ   reflect.Type // of the field
	list  bool
	inner *section // of a section, or of the items of a list of sections; nil for plain values
	leaf  leaf     // of a plain value, or of the items of a list of them
}

// root is the whole file.
var root = sectionOf(reflect.TypeFor[Config](), "")

// sectionOf reads the keys of a struct type from the tags of its fields. Fields without a yaml tag are no keys.
func sectionOf(t reflect.Type, path string) *section {
	s := &section{path: path}
	for i := range t.NumField() {
		f := t.Field(i)
		name, ok := f.Tag.Lookup("yaml")
		if !ok {
			continue
		}
		k := key{name: name, path: join(path, name), field: i, typ: f.Type}
		item := f.Type
		if f.Type.Kind() == reflect.Slice {
			k.list, item = true, f.Type.Elem()
		}
		if l, plain := leafOf(item, f.Tag.Get("is")); plain {
			k.leaf = l
		} else {
			k.inner = sectionOf(item, k.path)
		}
		s.keys = append(s.keys, k)
	}
	for _, p := range later {
		if parent(p) == path {
			s.later = append(s.later, strings.TrimPrefix(p, path+"."))
		}
	}
	return s
}

// find is the key of that exact name.
func (s *section) find(name string) (key, bool) {
	i := slices.IndexFunc(s.keys, func(k key) bool { return k.name == name })
	if i < 0 {
		return key{}, false
	}
	return s.keys[i], true
}

// otherwise are the keys that go by another name here, by what people write.
var otherwise = map[string]string{
	"people.phone": "whatsapp", "people.mobile": "whatsapp", "people.number": "whatsapp", "people.account": "user",
	"people.tz": "timezone", "people.zone": "timezone",
}

// suggest says which key was probably meant by a name that is none of s.
func (s *section) suggest(name string) string {
	if meant := otherwise[join(s.path, strings.ToLower(name))]; meant != "" {
		return "did you mean " + meant + "?"
	}
	near, homes := suggest(name, s.names(), s.later...), root.homes(name, false)
	if s == root && len(homes) == 0 {
		homes = root.homes(name, true)
	}
	switch {
	case len(homes) != 1, levenshtein.ComputeDistance(near, "did you mean "+name+"?") == 1:
		return near
	case homes[0] == root:
		return "it belongs at the top of the file"
	}
	return "it belongs under " + homes[0].path
}

// homes are the sections that have a key of that name; with items, also those in lists.
func (s *section) homes(name string, items bool) (all []*section) {
	if _, has := s.find(name); has {
		all = append(all, s)
	}
	for _, k := range s.keys {
		if k.inner != nil && (items || !k.list) {
			all = append(all, k.inner.homes(name, items)...)
		}
	}
	return all
}

// names are the names of the keys.
func (s *section) names() []string {
	names := make([]string, len(s.keys))
	for i, k := range s.keys {
		names[i] = k.name
	}
	return names
}

// settings are the keys below s that hold a value of their own, with lists as one: what has a default and an origin.
func (s *section) settings() []key {
	var all []key
	for _, k := range s.keys {
		if k.inner != nil && !k.list {
			all = append(all, k.inner.settings()...)
		} else {
			all = append(all, k)
		}
	}
	return all
}
