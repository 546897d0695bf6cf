package config

import (
	"strings"
	"testing"
)

// TestBadTimes is about quiet hours, shares of a request's time, and how long things are kept.
func TestBadTimes(t *testing.T) {
	quiet := func(v string) string { return "people: [{name: fay, user: fay, quiet: " + v + "}]\n" }
	after := func(v string) string {
		return "people: [{name: fay, user: fay}, {name: kim, user: kim}]\n" +
			"routes: [{ask: [fay], escalate: {to: [kim], after: " + v + "}}]\n"
	}
	remind := func(v string) string { return "approvals: {remind: " + v + "}\n" }
	const noHours = " is no span of hours; write "
	since := func(time string) string {
		return ` is no span of hours, since "` + time + `" is no time of the day; write it as in "22:00-07:00"`
	}
	for _, test := range []struct{ name, text, want string }{
		{"one time", quiet(`"22:00"`), `1: people.quiet: "22:00"` + noHours + `it as in "22:00-07:00"`},
		{"one time without quotes", quiet("22:00"), `1: people.quiet: "22:00"` + noHours + `it as in "22:00-07:00"`},
		{"an hour without quotes", quiet("22"),
			`1: people.quiet: "22"` + noHours + `it as in "22:00-07:00"`},
		{"a fraction without quotes", quiet("21.30"),
			`1: people.quiet: "21.30"` + noHours + `it as in "22:00-07:00"`},
		{"truth for hours", quiet("true"),
			`1: people.quiet: "true"` + noHours + `it as in "22:00-07:00"`},
		{"a list of times", quiet("[22:00, 07:00]"), `1: people.quiet is hours, not a list; write one value`},
		{"a section of times", quiet("{from: 22:00}"),
			`1: people.quiet is hours, not a section of keys; write one value`},
		{"bare hours", quiet("21-7"), `1: people.quiet: "21-7"` + noHours + `"21:00-07:00"`},
		{"a missing zero", quiet("9:30-17:00"), `1: people.quiet: "9:30-17:00"` + noHours + `"09:30-17:00"`},
		{"a dash of print", quiet("22.15 – 06.00"), `1: people.quiet: "22.15 – 06.00"` + noHours + `"22:15-06:00"`},
		{"in words", quiet("10pm to 6:30am"), `1: people.quiet: "10pm to 6:30am"` + noHours + `"22:00-06:30"`},
		{"noon and midnight", quiet("12pm-12am"), `1: people.quiet: "12pm-12am"` + noHours + `"12:00-00:00"`},
		{"midnight as 24", quiet("22:00-24:00"), `1: people.quiet: "22:00-24:00"` + noHours + `"22:00-00:00"`},
		{"no such hour", quiet("25:00-26:00"), `1: people.quiet: "25:00-26:00"` + since("25:00")},
		{"no such minute", quiet("22:60-07:00"), `1: people.quiet: "22:60-07:00"` + since("22:60")},
		{"no such half", quiet("13pm-7am"), `1: people.quiet: "13pm-7am"` + since("13pm")},
		{"with seconds", quiet("22:00:00-07:00:00"), `1: people.quiet: "22:00:00-07:00:00"` + since("22:00:00")},
		{"other digits", quiet("２２:００-０７:００"), `1: people.quiet: "２２:００-０７:００"` + since("２２:００")},
		{"nothing", quiet(`""`), `1: people.quiet: ""` + noHours + `it as in "22:00-07:00"`},
		{"the whole day", quiet(`"00:00-00:00"`), `1: people.quiet: "00:00-00:00" ends when it begins; ` +
			`write two different times, as in "22:00-07:00", or leave it out for none`},

		{"unknown channel", "people: [{name: fay, via: [telegrm, pigeon]}]\n",
			"1: people.via: unknown channel \"telegrm\"; did you mean telegram?\n" +
				"1: people.via: unknown channel \"pigeon\"; there are " + strings.Join(channels, ", ")},

		{"no share", after("0%"), `2: routes.escalate.after: "0%" is not between the beginning and the end; write 1% to 99%`},
		{"all", after("100%"), `2: routes.escalate.after: "100%" is not between the beginning and the end; write 1% to 99%`},
		{"a share with space", after("50 %"),
			`2: routes.escalate.after: "50 %" is not a share of the time; write a whole number and %, as in 50%`},
		{"a share of a share", after("12.5%"),
			`2: routes.escalate.after: "12.5%" is not a share of the time; write a whole number and %, as in 50%`},
		{"a number", after("50"), `2: routes.escalate.after: "50" has no unit; ` +
			`write a share of the time, as in 50%, or a duration, as in 10m`},
		{"a fraction", after("0.5"), `2: routes.escalate.after: "0.5" has no unit; ` +
			`write a share of the time, as in 50%, or a duration, as in 10m`},
		{"words", after("half"), `2: routes.escalate.after: "half" is not a duration; ` +
			`write a number and its unit, as in 90s, 15m or 4h; or a share of the time, as in 50%`},
		{"too soon", after("1ms"),
			`2: routes.escalate.after: "1ms" is too short; write 1s or more; or a share of the time, as in 50%`},

		{"one reminder", remind("50%"), `1: approvals.remind is a list, not text; write remind: [50%]`},
		{"reminded twice", remind("[50%, 10m, 600s, 50%]"), "1: approvals.remind: 10m is there already; write it once\n" +
			"1: approvals.remind: 50% is there already; write it once"},
		{"bad reminder", remind("[50%, soon]"), `1: approvals.remind: "soon" is not a duration; ` +
			`write a number and its unit, as in 90s, 15m or 4h; or a share of the time, as in 50%`},

		{"days without a unit", "keep: {requests: 90}\n", `1: keep.requests: "90" is not a number of days; write 90d`},
		{"days in words", "keep: {requests: 90 days}\n", `1: keep.requests: "90 days" is not a number of days; write 90d`},
		{"weeks", "keep: {requests: 12 weeks}\n", `1: keep.requests: "12 weeks" is not a number of days; write 84d`},
		{"months", "keep: {requests: 3 months}\n", `1: keep.requests: "3 months" is not a number of days; write 90d`},
		{"a year", "keep: {audit: 1y}\n", `1: keep.audit: "1y" is not a number of days; write 365d`},
		{"hours in words", "keep: {payloads: 48 hours}\n",
			`1: keep.payloads: "48 hours" is not a number of days; write 48h`},
		{"half a day", "keep: {payloads: 1.5d}\n",
			`1: keep.payloads: "1.5d" is not a number of days; write whole days, as in 90d`},
		{"no day", "keep: {payloads: 0d}\n", `1: keep.payloads: "0d" is too short; write 1d or more`},
		{"less than a day", "keep: {payloads: 23h}\n", `1: keep.payloads: "23h" is too short; write 1d or more`},
		{"for ever", "keep: {audit: 999999d}\n", `1: keep.audit: "999999d" is too long; write 36500d or less`},
		{"shorter than a chat remembers", "keep:\n  payloads: 1d\n  requests: 7d\n", `3: keep.requests: 7d is too short, ` +
			`since a chat may deliver an answer again for days; write 8d or more`},
		{"payloads longer than requests", "keep: {payloads: 91d}\n", `1: keep.payloads: 91d is longer than ` +
			`keep.requests, which is 90d; write a shorter one, or lengthen the other`},
		{"requests shorter than payloads", "keep: {requests: 20d}\n", `1: keep.payloads: 30d is longer than ` +
			`keep.requests, which is 20d; write a shorter one, or lengthen the other`},
		{"requests longer than the audit", "keep:\n  audit: 60d\n  requests: 1441h\n", `3: keep.requests: 1441h is ` +
			`longer than keep.audit, which is 60d; write a shorter one, or lengthen the other`},
		{"audit shorter than requests", "keep: {audit: 60d}\n", `1: keep.requests: 90d is longer than ` +
			`keep.audit, which is 60d; write a shorter one, or lengthen the other`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := lines(t, test.text); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}
