package main

import (
	"regexp"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/daycared/daycared/connectors/telegram/telegramtest"
)

// People are enrolled in scripts, too:
//
//	phone NAME ID LANGUAGE   give somebody a phone with that account, who has not started the bot
//	follows NAME ACTOR       press Start behind the last link that ACTOR has shown; $WORD is what it carries
//	starts NAME WORD         press Start behind a link with that word

func enrolCommands() scriptCommands {
	with := func(count int, do func(*testscript.TestScript, []string)) func(*testscript.TestScript, bool, []string) {
		return func(ts *testscript.TestScript, neg bool, args []string) {
			if neg || len(args) != count {
				ts.Fatalf("it takes %d arguments", count)
			}
			do(ts, args)
		}
	}
	return scriptCommands{"phone": with(3, hasPhone), "follows": with(2, follows), "starts": with(2, starts)}
}

func hasPhone(ts *testscript.TestScript, args []string) {
	id, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	c := chatsOf(ts)
	c.people[args[0]] = c.server.Person(telegramtest.User{
		ID: id, FirstName: args[0], LastName: "Example", LanguageCode: args[2],
	})
}

var linkShown = regexp.MustCompile(`https://t\.me/\w+\?start=([A-Za-z0-9_-]+)`)

func follows(ts *testscript.TestScript, args []string) {
	a, known := cast(ts)[args[1]]
	if !known {
		ts.Fatalf("nobody is called %s", args[1])
	}
	a.mu.Lock()
	all := linkShown.FindAllSubmatch(a.said, -1)
	a.mu.Unlock()
	if len(all) == 0 {
		ts.Fatalf("%s has shown no link", args[1])
	}
	word := string(all[len(all)-1][1])
	ts.Setenv("WORD", word)
	chatsOf(ts).person(ts, args[0]).Start(word)
}

func starts(ts *testscript.TestScript, args []string) { chatsOf(ts).person(ts, args[0]).Start(args[1]) }
