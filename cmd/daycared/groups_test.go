package main

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/daycared/daycared/connectors/telegram/telegramtest"
)

// Scripts with a Telegram may have groups in it. In them, people are called NAME@GROUP:
//
//	group GROUP KIND NAME…     make a group, supergroup or forum of these people, the first of whom adds the bot;
//	                           $GROUP is its id, $GROUP_THREAD a topic of the forum, in which they are
//	intopic                    the card is in that topic
//	hidden NAME BUTTON TOAST   press a button as an administrator who hides behind the group
//	kicked GROUP NAME          somebody removes the bot
//	left GROUP                 wait until the bot has left
//	migrates GROUP NAME        it becomes a supergroup, in which its people are from here on
func groupCommands() scriptCommands {
	with := func(least int, do func(*testscript.TestScript, *chats, []string)) func(*testscript.TestScript, bool, []string) {
		return func(ts *testscript.TestScript, neg bool, args []string) {
			if neg || len(args) < least {
				ts.Fatalf("it takes %d arguments", least)
			}
			do(ts, chatsOf(ts), args)
		}
	}
	return scriptCommands{
		"group": with(3, gathers), "intopic": with(0, inTopic), "hidden": with(3, pressesHidden),
		"kicked": with(2, kicks), "left": with(1, hasLeft), "migrates": with(2, migrates),
	}
}

// room is a group of a script.
type room struct {
	*telegramtest.Group
	thread int
	people []string
}

func gathers(ts *testscript.TestScript, c *chats, args []string) {
	people := make([]*telegramtest.Person, len(args)-2)
	for i, name := range args[2:] {
		people[i] = c.person(ts, name)
	}
	g := &room{people: args[2:]}
	switch args[1] {
	case "group":
		g.Group = c.server.Group(args[0], people...)
	case "supergroup":
		g.Group = c.server.Supergroup(args[0], people...)
	case "forum":
		g.Group = c.server.Forum(args[0], people...)
		g.thread = g.Topic(people[0], "deploys")
	default:
		ts.Fatalf("there are groups, supergroups and forums")
	}
	g.AddsBot(people[0])
	c.enter(args[0], g)
	ts.Setenv(strings.ToUpper(args[0]), strconv.FormatInt(g.ID(), 10))
	ts.Setenv(strings.ToUpper(args[0])+"_THREAD", strconv.Itoa(g.thread))
}

// enter adds a group's people to it.
func (c *chats) enter(name string, g *room) {
	if c.groups == nil {
		c.groups = map[string]*room{}
	}
	c.groups[name] = g
	for _, who := range g.people {
		c.people[who+"@"+name] = c.people[who].In(g.Group).InThread(g.thread)
	}
}

func (c *chats) group(ts *testscript.TestScript, name string) *room {
	g, known := c.groups[name]
	if !known {
		ts.Fatalf("there is no group %s", name)
	}
	return g
}

func inTopic(ts *testscript.TestScript, c *chats, _ []string) {
	for _, g := range c.groups {
		if g.ID() == c.now.Chat && g.thread == c.now.Thread && g.thread != 0 {
			return
		}
	}
	ts.Fatalf("it is in chat %d, thread %d", c.now.Chat, c.now.Thread)
}

func pressesHidden(ts *testscript.TestScript, c *chats, args []string) {
	data := dataOf(c.now.Keyboard, args[1])
	toasts(ts, c.person(ts, args[0]).Anonymously().TapsData(c.now.ID, data), args[2:])
}

func kicks(ts *testscript.TestScript, c *chats, args []string) {
	c.group(ts, args[0]).KicksBot(c.person(ts, args[1]))
}

func hasLeft(ts *testscript.TestScript, c *chats, args []string) {
	g := c.group(ts, args[0])
	until(ts, "the bot has left", func(context.Context) error {
		if g.HasBot() {
			return errors.New("it is there")
		}
		return nil
	})
}

func migrates(ts *testscript.TestScript, c *chats, args []string) {
	was := c.group(ts, args[0])
	c.enter(args[0], &room{Group: was.Migrates(c.person(ts, args[1])), people: was.people})
}
