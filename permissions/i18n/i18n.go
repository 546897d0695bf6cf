// Package i18n translates what people read from us, and has the words of answers in every language.
//
// English texts stand in the code, as constants of the type [Phrase]. A language is one file, such as de.txt: a phrase, and
// below it, after a tab, what it is in that language. What agents, callers and people say is never translated.
package i18n

import (
	"embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Phrase is a text of ours in English, with placeholders as fmt has them. A constant of this type is a key of every file.
// With a bar it has two forms, for [Language.Plural]. In a file \n is a new line.
type Phrase string

// Language is a language, as in de. The zero Language is none in particular, and reads as English.
type Language string

// English is the language of the phrases themselves.
const English Language = "en"

//go:embed *.txt
var files embed.FS

// rows has the files of all languages but English.
var rows = read()

func read() map[Language]map[Phrase]string {
	all := map[Language]map[Phrase]string{}
	list, _ := files.ReadDir(".") // it is part of the program
	for _, file := range list {
		text, _ := files.ReadFile(file.Name())
		in, key := map[Phrase]string{}, Phrase("")
		for line := range strings.Lines(string(text)) {
			row, told := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "\t")
			if row = strings.ReplaceAll(row, `\n`, "\n"); told {
				in[key] = row
			} else {
				key = Phrase(row)
			}
		}
		all[Language(strings.TrimSuffix(file.Name(), ".txt"))] = in
	}
	return all
}

// Languages are all languages, English first.
func Languages() []Language { return append([]Language{English}, slices.Sorted(maps.Keys(rows))...) }

// Known returns the language of a code such as de, de-AT or DE, or the zero Language if it is none of ours.
func Known(code string) Language {
	code, _, _ = strings.Cut(strings.ToLower(code), "-")
	if !slices.Contains(Languages(), Language(code)) {
		return ""
	}
	return Language(code)
}

// Text is a phrase in l, or the phrase itself if l has no row for it.
func (l Language) Text(p Phrase) string {
	if row, known := rows[l][p]; known {
		return row
	}
	return string(p)
}

// Sprintf formats a phrase in l. Arguments that are phrases are translated as well.
func (l Language) Sprintf(p Phrase, args ...any) string {
	if len(args) == 0 {
		return l.Text(p)
	}
	args = slices.Clone(args)
	for i, arg := range args {
		if q, ok := arg.(Phrase); ok {
			args[i] = l.Text(q)
		}
	}
	return fmt.Sprintf(l.Text(p), args...)
}

// Plural formats the form of a phrase for n things: before its bar for one, otherwise behind it. Without arguments n is the
// only one.
func (l Language) Plural(n int, p Phrase, args ...any) string {
	form, several, _ := strings.Cut(l.Text(p), "|")
	if n != 1 {
		form = several
	}
	if len(args) == 0 && strings.Contains(form, "%") {
		args = []any{n}
	}
	return fmt.Sprintf(form, args...)
}

// Duration is d in whole minutes if possible: "15 minutes", "1 minute", "90 seconds". A fraction of a second is rounded up.
func (l Language) Duration(d time.Duration) string {
	if d >= time.Minute && d%time.Minute == 0 {
		return l.Plural(int(d/time.Minute), "%d minute|%d minutes")
	}
	return l.Plural(int((d+time.Second-1)/time.Second), "%d second|%d seconds")
}

// dates are the names that [time.Time.Format] writes in English.
var (
	days  = []Phrase{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"}
	dates = []Phrase{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"}
)

// Time formats a time by a layout of the package time, whose months and days have three letters.
func (l Language) Time(at time.Time, layout Phrase) string {
	text := at.Format(l.Text(layout))
	for _, name := range []Phrase{days[at.Weekday()], dates[at.Month()-1]} {
		text = strings.Replace(text, string(name), l.Text(name), 1)
	}
	return text
}

// All returns the words of a phrase in every language, in small letters: those by which answers are read.
func All(p Phrase) []string {
	all := strings.Fields(string(p))
	for _, l := range slices.Sorted(maps.Keys(rows)) {
		all = append(all, strings.Fields(l.Text(p))...)
	}
	return all
}
